// The possible contents of a file after calls of which some failed or did not return: each of their bytes may be there
// or not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/random_patterns.hpp"

namespace tapioca::test {

/// The whole file; empty if there is none.
inline Bytes contents(std::string const& path)
{
    std::error_code error;
    auto const size = std::filesystem::file_size(path, error);
    Bytes bytes(error ? 0 : size);
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

class FileModel {
public:
    explicit FileModel(Bytes before = {}) : image_(std::move(before)) {}

    /// A call that returned: it wins over everything older.
    void write(std::int64_t base, Declared const& variable, Bytes const& data)
    {
        apply(image_, base, variable, data);
        if (maybe_.empty()) return;
        each(base, variable, data, [&](std::size_t at, std::byte) { maybe_.erase(at); });
    }
    /// A call that did not return.
    void begin(std::int64_t base, Declared const& variable, Bytes const& data)
    {
        each(base, variable, data, [&](std::size_t at, std::byte value) { add(at, value); });
    }
    /// A byte that may also have this value.
    void add(std::size_t at, std::byte value)
    {
        maybe_[at].push_back(value);
        most_ = std::max(most_, at + 1);
    }
    [[nodiscard]] bool allows(std::size_t at, std::byte value) const
    {
        if (at < image_.size() ? value == image_[at] : at < most_ && value == std::byte{}) return true;
        auto const found = maybe_.find(at);
        return found != maybe_.end() &&
               std::find(found->second.begin(), found->second.end(), value) != found->second.end();
    }
    /// The first byte that is impossible, or -1.
    [[nodiscard]] std::int64_t first_wrong(Bytes const& file) const
    {
        if (file.size() < image_.size()) return static_cast<std::int64_t>(file.size());
        for (std::size_t i = 0; i < file.size(); ++i)
            if (!allows(i, file[i])) return static_cast<std::int64_t>(i);
        return -1;
    }
    /// The bytes that are certain, and the number of those that are not.
    [[nodiscard]] Bytes const& image() const { return image_; }
    [[nodiscard]] std::size_t open_bytes() const { return maybe_.size(); }
    /// Whether every byte and the size are certain.
    [[nodiscard]] bool certain() const { return maybe_.empty() && most_ <= image_.size(); }

    /// Calls visit(place in the file, value) for every byte of a variable.
    template <class Visit>
    static void each(std::int64_t base, Declared const& variable, Bytes const& data, Visit const& visit)
    {
        std::size_t from = 0;
        for (auto const& extent : variable.extents)
            for (std::int64_t i = 0; i < extent.length; ++i, ++from)
                visit(static_cast<std::size_t>(base + extent.offset + i), data[from]);
    }

private:
    Bytes image_;
    std::unordered_map<std::size_t, std::vector<std::byte>> maybe_;
    std::size_t most_ = 0;  ///< where the file may end
};

}  // namespace tapioca::test
