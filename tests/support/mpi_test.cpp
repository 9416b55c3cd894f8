// See mpi_test.hpp.
#include "support/mpi_test.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>

namespace tapioca::test {

namespace {

/// A number that differs for different texts.
std::uint64_t digest(std::string const& text)
{
    std::uint64_t hash = 14695981039346656037U;
    for (unsigned char const c : text) hash = (hash ^ c) * 1099511628211U;
    return hash;
}

}  // namespace

int rank()
{
    int value = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &value);
    return value;
}

int ranks()
{
    int value = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &value);
    return value;
}

bool last()
{
    return rank() == ranks() - 1;
}

bool on_all_ranks(bool mine)
{
    int local = mine ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&local, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all == 1;
}

std::uint64_t from_rank_0(std::uint64_t value)
{
    MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return value;
}

void barrier()
{
    MPI_Barrier(MPI_COMM_WORLD);
}

Scratch::Scratch()
{
    auto const* const test = testing::UnitTest::GetInstance()->current_test_info();
    auto name = std::string(test->test_suite_name()) + "." + test->name();
    std::replace(name.begin(), name.end(), '/', '-');
    directory_ = std::filesystem::current_path().string() + "/" + name;
    if (rank() == 0) {
        std::filesystem::remove_all(directory_);
        std::filesystem::create_directories(directory_);
    }
    barrier();
}

Scratch::~Scratch()
{
    if (std::uncaught_exceptions() > 0) return;  // the other ranks are elsewhere
    barrier();
    std::error_code ignored;
    if (rank() == 0) std::filesystem::remove_all(directory_, ignored);
}

Caught caught(std::function<void()> const& call)
{
    try {
        call();
    } catch (Error const& error) {
        return {error.code(), error.rank(), error.sys_errno(), error.what(), error.path()};
    }
    return {};
}

void expect_same_on_all_ranks(Caught const& mine)
{
    EXPECT_NE(mine.code, Errc::ok) << "nothing was thrown";
    EXPECT_EQ(mine.text.find('\n'), std::string::npos) << "more than one line: " << mine.text;
    EXPECT_TRUE(mine.text.starts_with("tapioca: ") || mine.text.empty()) << mine.text;
    std::array<std::uint64_t, 5> const values = {static_cast<std::uint64_t>(mine.code), digest(mine.text),
                                                 static_cast<std::uint64_t>(mine.rank),
                                                 static_cast<std::uint64_t>(mine.sys_errno), digest(mine.path)};
    std::array<std::uint64_t, 5> of_rank_0 = values;
    MPI_Bcast(of_rank_0.data(), 5, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    EXPECT_TRUE(values == of_rank_0) << "differs from rank 0's: code " << static_cast<int>(mine.code) << ", rank "
                                     << mine.rank << ", errno " << mine.sys_errno << ": " << mine.text;
}

Caught same_error_on_all_ranks(std::function<void()> const& call)
{
    auto mine = caught(call);
    expect_same_on_all_ranks(mine);
    return mine;
}

void expect_parts(std::string const& text, std::vector<std::string> const& parts)
{
    for (auto const& part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

std::vector<std::byte> contents(std::string const& path)
{
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) return {};
    std::vector<std::byte> bytes(static_cast<std::size_t>(in.tellg()));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

void write_plain(std::string const& path, std::vector<std::byte> const& bytes)
{
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::byte byte_of(std::uint64_t seed, std::uint64_t index)
{
    auto x = seed * 0x9e3779b97f4a7c15U + index * 0xd1b54a32d192ed03U + 1;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    return static_cast<std::byte>(x >> 56);
}

std::vector<std::byte> stream(std::uint64_t seed, std::size_t bytes)
{
    std::vector<std::byte> result(bytes);
    for (std::size_t i = 0; i < bytes; ++i) result[i] = byte_of(seed, i);
    return result;
}

std::vector<std::byte> data_of(std::uint64_t seed, int run, std::size_t of_rank, std::size_t variable,
                               std::int64_t bytes)
{
    return stream(seed * 7919 + static_cast<std::uint64_t>(run) * 131 + of_rank * 17 + variable,
                  static_cast<std::size_t>(bytes));
}

void expect_windows(Step const& step)
{
    auto const plan = step.plan().json();
    EXPECT_EQ(plan.find("p2p instead of rma: "), std::string::npos) << plan;
}

bool windows_asked_for()
{
    auto const* const transport = std::getenv("TAPIOCA_TRANSPORT");
    auto const* const ranks_per_node = std::getenv("TAPIOCA_RANKS_PER_NODE");
    return transport && std::string(transport) == "rma" && ranks_per_node && std::atoi(ranks_per_node) < ranks();
}

void expect_next_file_works(Scratch const& scratch, Options const& options)
{
    constexpr std::int64_t each = 10'001;
    auto const data = stream(77 + static_cast<std::uint64_t>(rank()), each);
    Pattern pattern;
    pattern.add({{rank() * each, each}});
    auto file = File::open(MPI_COMM_WORLD, scratch.path("next"), Mode::create, options);
    auto step = file.declare(pattern);
    step.write(0, data);
    EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
    std::vector<std::byte> back(each);
    step.read(0, back);
    EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
    EXPECT_TRUE(back == data);
    expect_windows(step);
    EXPECT_EQ(file.size(), static_cast<std::uint64_t>(each * ranks()));
    file.close();
}

}  // namespace tapioca::test
