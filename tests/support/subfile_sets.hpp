// Records of sets of subfiles, sets in a directory, and what they mean byte by byte: a slow and obvious implementation
// with which the fast code is compared.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "subfile/extent_map.hpp"
#include "subfile/set_directory.hpp"
#include "subfile/set_writer.hpp"
#include "support/layouts.hpp"

namespace tapioca::test {

using SetBytes = std::vector<std::byte>;

inline subfile::SetId const some_set = {std::byte{0x5E}, std::byte{0x7}};

template <class T>
T expect(core::Result<T> result)
{
    EXPECT_TRUE(result) << (result ? "" : result.error().text);
    return result ? std::move(*result) : T();
}

inline pattern::Variables variables_of(std::vector<std::vector<Extent>> const& all)
{
    pattern::Variables variables;
    for (auto const& extents : all)
        variables.push_back(
            std::make_shared<pattern::Variable const>(pattern::Variable::from_extents(variables.size(), extents)));
    return variables;
}

inline std::uint64_t bytes_of(pattern::Variables const& variables)
{
    std::uint64_t sum = 0;
    for (auto const& variable : variables) sum += variable->bytes();
    return sum;
}

/// A form with one rank and one variable.
inline SetBytes form_of(std::uint32_t subfile, std::uint32_t number, std::vector<Extent> const& extents)
{
    auto const variables = variables_of({extents});
    auto const entries = expect(subfile::encode_part(variables, 0));
    return subfile::form_record(subfile, number, bytes_of(variables), entries, some_set);
}

inline SetBytes chunk_of(std::uint32_t subfile, std::uint32_t form, std::uint64_t epoch, std::int64_t shift,
                         std::uint64_t position)
{
    return subfile::chunk_record({{}, subfile, form, epoch, shift, position, 1, 0, 0, 0}, some_set);
}

struct Steps {
    std::uint64_t count, epoch;
    std::int64_t shift;
    std::uint64_t position;
};
inline SetBytes chunks_of(std::uint32_t subfile, std::uint32_t form, std::uint64_t epoch, std::int64_t shift,
                          std::uint64_t position, Steps const& steps)
{
    return subfile::chunk_record(
        {{}, subfile, form, epoch, shift, position, steps.count, steps.epoch, steps.shift, steps.position}, some_set);
}

inline std::string failure_of(core::Status const& status)
{
    return status ? std::string() : status.error().text;
}

/// Adds records one after the other; the first failure's text.
inline std::string add_all(subfile::ExtentMap& map, std::span<std::byte const> records)
{
    while (!records.empty()) {
        auto const record = subfile::next_record(records, subfile::seed_of(some_set));
        if (record.empty()) return "a record cannot be read";
        if (auto const status = map.add(record); !status) return status.error().text;
        records = records.subspan(record.size());
    }
    return {};
}

/// Where a byte lies.
struct InSubfile {
    std::uint32_t subfile;
    std::int64_t position;
    bool operator==(InSubfile const&) const = default;
};
using Model = std::map<std::int64_t, InSubfile>;

/// What find() says about every byte of [begin, end), looked at in ranges of `at_once` bytes.
inline Model model_of(subfile::ExtentMap const& map, std::int64_t begin, std::int64_t end, std::int64_t at_once)
{
    Model model;
    for (auto at = begin; at < end; at += at_once) {
        auto const until = std::min(at + at_once, end);
        for (auto const& holding : map.find(at, until))
            for (auto const& place : places(holding.part->layout)) {
                auto const offset = place.file + holding.shift;
                if (offset >= at && offset < std::min(until, holding.end))
                    model[offset] = {holding.subfile, holding.position + place.buffer};
            }
    }
    return model;
}

/// A directory for one test.
class SetScratch {
public:
    SetScratch()
    {
        auto name = std::string(std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + "/tapioca-set-test-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    SetScratch(SetScratch const&) = delete;
    SetScratch& operator=(SetScratch const&) = delete;
    ~SetScratch() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string path(std::string const& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline void put_file(std::string const& path, std::span<std::byte const> bytes)
{
    core::Descriptor const file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    EXPECT_TRUE(core::write_all(file.get(), 0, bytes, "a test's file"));
}

inline SetBytes file_bytes(std::string const& path)
{
    core::Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    SetBytes bytes(file ? std::filesystem::file_size(path) : 0);
    EXPECT_TRUE(core::read_all(file.get(), 0, bytes, "a test's file")) << path;
    return bytes;
}

/// A job of `groups` groups, each of one rank, that adds to a set; all in one process.
class SetJob {
public:
    /// Makes the set, or opens it.
    SetJob(std::string directory, bool create, std::uint32_t groups = 1)
        : directory_(std::move(directory)), contents_(-1, some_set)
    {
        subfile::WriterFacts const facts{groups, 1, groups, "files", "a"};
        std::uint64_t generation = 1, epoch = 0;
        std::uint32_t first = 0;
        if (create) {
            lock_ = expect(subfile::make_set(directory_, some_set, facts));
            opened_ = expect(subfile::open_directory(directory_));
        } else {
            opened_ = expect(subfile::open_directory(directory_));
            contents_ = subfile::SetContents(opened_.get(), some_set);
            EXPECT_EQ(failure_of(contents_.refresh()), "");
            generation = contents_.head().generation + 1;
            epoch = contents_.map().epoch();
            first = contents_.next_subfile();
            auto lock = expect(subfile::take_lock(opened_.get(), contents_, some_set, facts));
            EXPECT_TRUE(lock);
            if (lock) lock_ = std::move(*lock);
        }
        for (std::uint32_t group = 0; group < groups; ++group)
            writers_.emplace_back(subfile::SetWriter::Place{directory_, some_set, generation, first + group, 16, true},
                                  epoch);
    }

    [[nodiscard]] subfile::SetWriter& writer(std::size_t group = 0) { return writers_[group]; }
    [[nodiscard]] int directory() const { return opened_.get(); }
    void advance()
    {
        for (auto& writer : writers_) writer.advance();
    }
    /// A new form of one variable for each list of extents.
    std::uint32_t form(std::vector<std::vector<Extent>> const& extents, std::size_t group = 0)
    {
        auto const variables = variables_of(extents);
        auto const number = writers_[group].add_form(bytes_of(variables));
        writers_[group].describe(number, {expect(subfile::encode_part(variables, 0)), false});
        return number;
    }
    /// A chunk whose data is `data`.
    void write(std::uint32_t form, std::int64_t shift, std::string const& data, std::size_t group = 0)
    {
        auto& writer = writers_[group];
        auto const position = writer.position_of(form, shift);
        core::Descriptor const file(::open(writer.path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        EXPECT_TRUE(core::write_all(file.get(), position, std::as_bytes(std::span(data)), "a chunk"));
        EXPECT_EQ(failure_of(writer.note_chunk(form, shift)), "");
    }
    /// One collective write of a chunk with one piece at `offset`.
    void write_at(std::int64_t offset, std::string const& data, std::size_t group = 0)
    {
        advance();
        write(form({{{offset, static_cast<std::int64_t>(data.size())}}}, group), 0, data, group);
    }
    void cut(std::int64_t size)
    {
        advance();
        EXPECT_EQ(failure_of(writers_[0].note_cut(size)), "");
    }
    /// Ends without completing the set.
    void die() { lock_ = {}; }
    [[nodiscard]] core::Status complete(bool durable = false)
    {
        auto status = subfile::complete_set(opened_.get(), some_set, durable);
        die();
        return status;
    }

private:
    std::string directory_;
    core::Descriptor opened_;
    subfile::SetContents contents_;
    core::Descriptor lock_;
    std::vector<subfile::SetWriter> writers_;
};

}  // namespace tapioca::test
