// What every multi-rank test needs: its rank, a directory for its files, and a check that an error is the same on every
// rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tapioca/tapioca.hpp>

namespace tapioca::test {

int rank();
int ranks();
/// Whether this is the last rank.
bool last();

/// True if `mine` is true on every rank. Collective.
bool on_all_ranks(bool mine);
/// Rank 0's `value`. Collective.
std::uint64_t from_rank_0(std::uint64_t value);
void barrier();

/// A directory of the running test below the working directory, the same on all ranks, removed at the end of this
/// object's life. Collective.
class Scratch {
public:
    Scratch();
    Scratch(Scratch const&) = delete;
    Scratch& operator=(Scratch const&) = delete;
    ~Scratch();
    [[nodiscard]] std::string path(std::string const& name) const { return directory_ + "/" + name; }
    [[nodiscard]] std::string const& directory() const { return directory_; }

private:
    std::string directory_;
};

/// What a call threw; `code` is ok if it threw nothing.
struct Caught {
    Errc code = Errc::ok;
    int rank = -2;
    int sys_errno = 0;
    std::string text;
    std::string path;
};

/// Local.
Caught caught(std::function<void()> const& call);

/// Checks that the text is one line, the same on all ranks. Collective over the world.
void expect_same_on_all_ranks(Caught const& mine);

/// Runs `call` on every rank and checks that it throws one line, the same on all ranks. Collective over the world.
Caught same_error_on_all_ranks(std::function<void()> const& call);

/// Checks that `text` contains each of `parts`.
void expect_parts(std::string const& text, std::vector<std::string> const& parts);

/// The whole file, or nothing if it cannot be read. Local.
std::vector<std::byte> contents(std::string const& path);
void write_plain(std::string const& path, std::vector<std::byte> const& bytes);

/// Byte `index` of a stream in which neighbours, ranks and variables all differ.
std::byte byte_of(std::uint64_t seed, std::uint64_t index);
std::vector<std::byte> stream(std::uint64_t seed, std::size_t bytes);
/// The data of a rank's variable in run number `run` of a trial.
std::vector<std::byte> data_of(std::uint64_t seed, int run, std::size_t of_rank, std::size_t variable,
                               std::int64_t bytes);

/// Checks that a step that has run was not refused the windows that it asked for: a test with TAPIOCA_TRANSPORT=rma
/// that falls back to messages would test nothing. Local.
void expect_windows(Step const& step);
/// True if the environment asks for rma on several pretended nodes.
bool windows_asked_for();

/// Writes a small file and reads it back, to check that the library still works after an error. Collective over the
/// world.
void expect_next_file_works(Scratch const& scratch, Options const& options = {});

}  // namespace tapioca::test
