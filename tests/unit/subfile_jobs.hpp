// Sets of subfiles as jobs write them, made by one process, and what the file has that they stand for.
#pragma once

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stage/log_files.hpp"
#include "subfile/set_directory.hpp"
#include "subfile/set_target.hpp"
#include "subfile/set_writer.hpp"

namespace tapioca::subfile::test {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// A directory for the life of this object.
class Scratch {
public:
    Scratch()
    {
        auto name = (fs::temp_directory_path() / "tapioca-subfile-test-XXXXXX").string();
        directory_ = ::mkdtemp(name.data());
    }
    Scratch(Scratch const&) = delete;
    Scratch& operator=(Scratch const&) = delete;
    ~Scratch() { fs::remove_all(directory_); }
    [[nodiscard]] std::string path(std::string const& name) const { return directory_ + "/" + name; }
    /// The names of everything in it, sorted.
    [[nodiscard]] std::vector<std::string> names() const
    {
        std::vector<std::string> names;
        for (auto const& entry : fs::directory_iterator(directory_)) names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    }

private:
    std::string directory_;
};
using Names = std::vector<std::string>;

inline Bytes content(std::string const& path)
{
    Bytes bytes(fs::file_size(path));
    core::Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(core::read_all(file.get(), 0, bytes, "test"));
    return bytes;
}

inline void put(std::string const& path, std::size_t at, std::span<std::byte const> bytes)
{
    core::Descriptor const file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    EXPECT_TRUE(core::write_all(file.get(), at, bytes, "test"));
}

inline Bytes some_bytes(std::size_t count, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    Bytes bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// A set that is being written, by jobs of some groups of one rank each.
class Set {
public:
    Set(Scratch const& scratch, std::uint32_t groups, std::string const& name = "a")
        : path_(scratch.path(name)), stub_{stage::new_identity(), directory_name(path_)}
    {
        auto lock = make_set(directory(), stub_.identity, {groups, 1, groups, "node", path_});
        EXPECT_TRUE(lock);
        lock_ = std::move(*lock);
        core::Descriptor const file(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
        EXPECT_TRUE(write_stub(file.get(), stub_));
        add_writers(1, 0, groups, 0);
    }
    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] std::string directory() const { return beside(path_, stub_.directory); }
    [[nodiscard]] std::string part(std::string const& name) const { return directory() + "/" + name; }
    [[nodiscard]] Stub const& stub() const { return stub_; }
    [[nodiscard]] Bytes const& image() const { return image_; }

    /// A collective write follows.
    void advance()
    {
        for (auto& writer : writers_) writer.advance();
    }
    /// A group writes its part of it, which others may replace later.
    void write(std::size_t group, std::vector<Extent> const& extents, std::uint64_t seed)
    {
        auto& writer = writers_[group];
        auto const variable =
            std::make_shared<pattern::Variable const>(pattern::Variable::from_extents(0, std::span(extents)));
        auto const bytes = some_bytes(variable->bytes(), seed);
        auto entries = encode_part({variable}, 0);
        ASSERT_TRUE(entries);
        auto const form = writer.add_form(bytes.size());
        writer.describe(form, {std::move(*entries), false});
        put(writer.path(), writer.position_of(form, 0), bytes);
        EXPECT_TRUE(writer.note_chunk(form, 0));
        std::size_t done = 0;
        for (auto const& [offset, length] : extents) {
            grow(static_cast<std::size_t>(offset + length));
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), length, image_.begin() + offset);
            done += static_cast<std::size_t>(length);
        }
    }
    /// Somebody writes bytes that no chunk has.
    void write_rest(std::size_t at, std::span<std::byte const> bytes)
    {
        put(part(rest_name), at, bytes);
        grow(at + bytes.size());
        std::copy(bytes.begin(), bytes.end(), image_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    /// The job ends without closing the file.
    void leave()
    {
        writers_.clear();
        lock_ = {};
    }
    void complete()
    {
        auto const opened = open_directory(directory());
        EXPECT_TRUE(complete_set(opened->get(), stub_.identity, false));
        leave();
    }
    /// A job goes on with a set that was completed.
    void open_again(std::uint32_t groups)
    {
        auto const opened = open_directory(directory());
        SetContents contents(opened->get(), stub_.identity);
        ASSERT_TRUE(contents.refresh());
        auto const first = contents.next_subfile();
        auto lock = take_lock(opened->get(), contents, stub_.identity, {groups, 1, groups, "node", path_});
        ASSERT_TRUE(lock && *lock);
        lock_ = std::move(**lock);
        add_writers(contents.head().generation + 1, first, groups, contents.map().epoch());
    }
    [[nodiscard]] Bytes read() const
    {
        SetTarget target(nullptr, directory(), stub_.identity, target::OpenMode::read);
        Bytes bytes(*target.size());
        EXPECT_TRUE(target.read(0, std::span<std::byte>(bytes)));
        return bytes;
    }

private:
    void add_writers(std::uint64_t generation, std::uint32_t first, std::uint32_t groups, std::uint64_t epoch)
    {
        for (std::uint32_t i = 0; i < groups; ++i)
            writers_.push_back(SetWriter({directory(), stub_.identity, generation, first + i, 4096, true}, epoch));
    }
    void grow(std::size_t size)
    {
        if (image_.size() < size) image_.resize(size);
    }

    std::string path_;
    Stub stub_;
    core::Descriptor lock_;
    std::vector<SetWriter> writers_;
    Bytes image_;
};

/// Blocks of one size, dealt to the groups in turn.
inline void write_in_turn(Set& set, std::size_t groups, std::int64_t block, std::int64_t blocks)
{
    set.advance();
    for (std::size_t group = 0; group < groups; ++group) {
        std::vector<Extent> extents;
        for (auto i = static_cast<std::int64_t>(group); i < blocks; i += static_cast<std::int64_t>(groups))
            extents.push_back({i * block, block});
        set.write(group, extents, group + 1);
    }
}

/// Collective writes of random extents, over each other.
inline void write_at_random(Set& set, std::size_t groups, std::mt19937_64& random)
{
    auto const pick = [&](std::int64_t least, std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    for (auto writes = pick(1, 5); writes > 0; --writes) {
        set.advance();
        for (std::size_t group = 0; group < groups; ++group) {
            std::vector<Extent> extents;
            auto at = pick(0, 20'000);
            for (auto count = pick(1, 12); count > 0; --count) {
                auto const length = pick(1, pick(0, 3) == 0 ? 200'000 : 500);
                extents.push_back({at, length});
                at += length + pick(0, 9000);
            }
            set.write(group, extents, random());
        }
    }
}

}  // namespace tapioca::subfile::test
