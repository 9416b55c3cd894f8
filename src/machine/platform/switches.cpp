#include "machine/platform/switches.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "machine/machine.hpp"

namespace tapioca::machine {

namespace {

/// The nodes under nested lists of host names or node numbers, in order of appearance.
struct Tree {
    std::vector<std::string> names;
    std::vector<int> numbers;
    std::vector<Path> paths;
};

void walk_tree(TomlTable const& topology, toml::array const& list, Path const& path, Tree& tree)
{
    if (path.size() > most_levels)
        topology.refuse(list, "switches", fmt::format("is nested more than {} deep", most_levels));
    if (list.empty()) topology.refuse(list, "switches", "has a switch with nothing below it");
    int child = 0;
    for (auto const& element : list) {
        if (auto const* const below = element.as_array()) {
            auto longer = path;
            longer.push_back(child++);
            walk_tree(topology, *below, longer, tree);
        } else if (auto const* const text = element.as_string()) {
            auto names = expand_hosts(text->get());
            if (!names) topology.refuse(element, "switches", "has a bad " + names.error().text);
            std::move(names->begin(), names->end(), std::back_inserter(tree.names));
        } else if (auto const* const number = element.as_integer();
                   number != nullptr && number->get() >= 0 && number->get() < most_nodes) {
            tree.numbers.push_back(static_cast<int>(number->get()));
        } else {
            topology.refuse(element, "switches", "must hold lists, host names or node numbers");
        }
        if (!tree.names.empty() && !tree.numbers.empty())
            topology.refuse(element, "switches", "must hold either host names or node numbers");
        auto const nodes = tree.names.size() + tree.numbers.size();
        if (nodes > most_nodes) topology.refuse(element, "switches", fmt::format("has more than {} nodes", most_nodes));
        tree.paths.resize(nodes, path);
    }
}

}  // namespace

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

std::vector<std::vector<int>> read_switches(TomlTable const& topology, Draft& draft)
{
    Tree tree;
    walk_tree(topology, *topology.array("switches"), {0}, tree);
    if (draft.hosts.empty()) draft.hosts = tree.names;
    std::map<std::string, int> numbers;
    for (auto const& host : draft.hosts) numbers.emplace(host, static_cast<int>(numbers.size()));
    for (auto const& name : tree.names) {
        auto const found = numbers.find(name);
        if (found == numbers.end()) topology.refuse("switches", fmt::format("has '{}', which is not in hosts", name));
        tree.numbers.push_back(found->second);
    }
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (nodes && static_cast<std::size_t>(*nodes) != tree.numbers.size())
        topology.refuse("switches", fmt::format("has {} nodes, topology.nodes is {}", tree.numbers.size(), *nodes));
    std::vector<Path> paths(tree.numbers.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
        auto const node = static_cast<std::size_t>(tree.numbers[i]);
        auto const called = tree.names.empty() ? fmt::format("{}", node) : fmt::format("'{}'", tree.names[i]);
        if (node >= paths.size())
            topology.refuse("switches", fmt::format("has {} nodes, so that there is no node {}", paths.size(), called));
        if (!paths[node].empty()) topology.refuse("switches", fmt::format("has node {} twice", called));
        paths[node] = tree.paths[i];
    }
    return number_switches(std::move(paths));
}

}  // namespace tapioca::machine
