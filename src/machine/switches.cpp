#include "machine/switches.hpp"

#include <algorithm>
#include <map>

namespace tapioca::machine {

std::vector<std::vector<int>> number_switches(std::vector<Path> paths)
{
    constexpr int none = -1;
    auto const top = [](Path const& path) { return path.empty() ? none : path.front(); };
    std::size_t deepest = 0;
    bool one_top = true;
    for (auto const& path : paths) {
        deepest = std::max(deepest, path.size());
        one_top = one_top && top(path) == top(paths.front());
    }
    for (auto& path : paths) {
        if (!one_top) path.insert(path.begin(), none);
        path.resize(deepest + (one_top ? 0 : 1), none);
    }
    std::vector<std::vector<int>> levels;
    for (auto length = paths.front().size(); length > 0; --length) {
        std::map<Path, int> numbers;
        std::vector<int> level;
        for (auto& path : paths) {
            path.resize(length);
            level.push_back(numbers.emplace(path, static_cast<int>(numbers.size())).first->second);
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

}  // namespace tapioca::machine
