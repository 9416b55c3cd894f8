// TAPIOCA_MEMORY is kept, and memory follows the data: measured, not asked of the plan. What the library allocates goes
// through this program's operator new; what the ranks of a node share is mapped from files whose names tell so.
// MEMORY_BYTES is what a rank has where memory follows the data, MEMORY_RANKS_PER_NODE how many ranks pretend to be a
// node, 0: as they are. With 32 ranks and more there are more figures: mpiexec -n 32 memory_test.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

#include <malloc.h>

#include "support/mpi_test.hpp"

namespace {

std::atomic<std::int64_t> live_bytes = 0;
std::atomic<std::int64_t> most_live_bytes = 0;

void* allocate(std::size_t bytes)
{
    void* const memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    auto const now = live_bytes += static_cast<std::int64_t>(::malloc_usable_size(memory));
    auto most = most_live_bytes.load();
    while (now > most && !most_live_bytes.compare_exchange_weak(most, now)) {}
    return memory;
}

void release(void* memory)
{
    if (memory) live_bytes -= static_cast<std::int64_t>(::malloc_usable_size(memory));
    std::free(memory);
}

}  // namespace

#define SEEN __attribute__((visibility("default")))
SEEN void* operator new(std::size_t bytes)
{
    return allocate(bytes);
}
SEEN void* operator new[](std::size_t bytes)
{
    return allocate(bytes);
}
SEEN void operator delete(void* memory) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory) noexcept
{
    release(memory);
}
SEEN void operator delete(void* memory, std::size_t) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory, std::size_t) noexcept
{
    release(memory);
}

namespace tapioca::test {
namespace {

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t MiB = 1024 * KiB;

std::int64_t number(char const* variable, std::int64_t otherwise)
{
    auto const* const text = std::getenv(variable);
    return text ? std::atoll(text) : otherwise;
}

/// Bytes of this process's mappings of the library's memory files.
std::int64_t shared_bytes()
{
    std::int64_t sum = 0;
    std::ifstream in("/proc/self/maps");
    for (std::string line; std::getline(in, line);) {
        if (line.find("/dev/shm/tapioca-") == std::string::npos) continue;
        char* end = nullptr;
        auto const first = std::strtoull(line.c_str(), &end, 16);
        sum += static_cast<std::int64_t>(std::strtoull(end + 1, nullptr, 16) - first);
    }
    return sum;
}

/// The first `size` ranks, as nodes of one rank each; none on the others.
class Part {
public:
    explicit Part(int size) { MPI_Comm_split(MPI_COMM_WORLD, rank() < size ? 0 : MPI_UNDEFINED, rank(), &comm_); }
    Part(Part const&) = delete;
    Part& operator=(Part const&) = delete;
    ~Part()
    {
        if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
    }
    [[nodiscard]] MPI_Comm comm() const { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

enum class Kind {
    in_turn,  ///< blocks of 1000 bytes, rank by rank
    pieces,   ///< of 24 bytes at unequal distances
    parts,    ///< one stretch each
    same,     ///< all ranks have the same 64 KiB, over and over
};

/// `bytes` of each rank in `variables` variables.
Pattern pattern_of(Kind kind, int size, int variables, std::int64_t bytes)
{
    Pattern pattern;
    auto const each = bytes / variables;
    for (std::int64_t v = 0; v < variables; ++v) {
        auto const begin = v * each * size * 2;
        if (kind == Kind::same)
            pattern.add(std::vector<Extent>(static_cast<std::size_t>(each / (64 * KiB)), {begin, 64 * KiB}));
        if (kind == Kind::parts) pattern.add({{begin + rank() * each, each}});
        if (kind == Kind::in_turn) {
            auto const blocks = std::max<std::int64_t>(1, each / 1000);
            auto const block = each / blocks;
            pattern.add(Subarray{{blocks, size * block}, {0, rank() * block}, {blocks, block}, {}, 1, begin});
        }
        if (kind == Kind::pieces) {
            std::vector<Extent> extents;
            for (std::int64_t i = 0; i < each / 24; ++i)
                extents.push_back({begin + (i * size + rank()) * 24 + i / 8, 24});
            pattern.add(extents);
        }
    }
    return pattern;
}

struct Used {
    std::int64_t own = 0;
    std::int64_t shared = 0;
};

/// Writes and reads back on the ranks of `comm`; the most that a rank had while it did so.
Used use(MPI_Comm comm, std::string const& path, Kind kind, int variables, std::int64_t bytes, Options options)
{
    int size = 1;
    MPI_Comm_size(comm, &size);
    if (auto const per_node = static_cast<int>(number("MEMORY_RANKS_PER_NODE", 1)); per_node > 0)
        options.ranks_per_node = per_node;
    auto const pattern = pattern_of(kind, size, variables, bytes);
    std::vector<std::vector<std::byte>> data;
    for (int v = 0; v < variables; ++v) {
        auto const length = kind == Kind::pieces ? bytes / variables / 24 * 24 : bytes / variables;
        data.push_back(stream(static_cast<std::uint64_t>(rank() * 4096 + v), static_cast<std::size_t>(length)));
    }
    if (kind == Kind::in_turn)
        for (auto& one : data) {
            auto const blocks = std::max<std::size_t>(1, one.size() / 1000);
            one.resize(one.size() / blocks * blocks);
        }
    auto back = data;
    for (auto& one : back) std::fill(one.begin(), one.end(), std::byte{0});
    Used used;
    auto const before = live_bytes.load();
    most_live_bytes = before;
    {
        auto file = File::open(comm, path, Mode::create, options);
        auto step = file.declare(pattern);
        for (auto v = 0U; v < data.size(); ++v) step.write(v, data[v]);
        step.finish();
        used.shared = shared_bytes();
        for (auto v = 0U; v < data.size(); ++v) step.read(v, back[v]);
        step.finish();
        used.shared = std::max(used.shared, shared_bytes());
        used.own = most_live_bytes - before;
        file.close();
    }
    EXPECT_TRUE(back == data || kind == Kind::same) << "every rank has its own bytes where all write";
    std::int64_t mine[2] = {used.own, used.shared};
    MPI_Allreduce(MPI_IN_PLACE, mine, 2, MPI_INT64_T, MPI_MAX, comm);
    return {mine[0], mine[1]};
}

TEST(Memory, OfAProcessStaysBelowItsCapOnAnyNumberOfNodes)
{
    Scratch const scratch;
    for (int const size : {1, 4, 12, 16, 32}) {
        if (size > ranks()) break;
        for (auto const& [kind, variables] :
             {std::pair(Kind::in_turn, 1), std::pair(Kind::in_turn, 100), std::pair(Kind::pieces, 1),
              std::pair(Kind::parts, 100), std::pair(Kind::parts, 2500), std::pair(Kind::same, 1)}) {
            if (variables == 2500 && size > 16) continue;  // is refused: where they stand takes more than that
            Part const part(size);
            if (part.comm() == MPI_COMM_NULL) continue;
            Options options;
            options.direct = Direct::never;
            options.memory = 8 * MiB;
            auto const used = use(part.comm(), scratch.path("file"), kind, variables,
                                  (kind == Kind::same ? 1024 : 512) * KiB, options);
            EXPECT_LE(used.own + used.shared, 8 * MiB)
                << size << " nodes, kind " << static_cast<int>(kind) << ", " << variables << " variables";
            if (rank() == 0)
                std::printf("  %d nodes, kind %d, %d variables: %lld KiB and %lld KiB shared\n", size,
                            static_cast<int>(kind), variables, static_cast<long long>(used.own / KiB),
                            static_cast<long long>(used.shared / KiB));
        }
        barrier();
    }
}

TEST(Memory, OfAbandonedStepsIsGivenBack)
{
    Scratch const scratch;
    Part const part(4);
    if (part.comm() == MPI_COMM_NULL) return;
    for (auto const* const transport : {"p2p", "rma"}) {
        Options options;
        options.direct = Direct::never;
        options.ranks_per_node = 2;
        options.transport = transport;
        auto const data = stream(1, 1 * MiB);
        auto const abandon_one = [&] {
            auto file = File::open(part.comm(), scratch.path("file"), Mode::create, options);
            auto const pattern = pattern_of(Kind::in_turn, 4, 1, 1 * MiB);
            {
                auto step = file.declare(pattern);
                step.write(0, std::span(data).first(MiB / 1000 * 1000));
                step.start();
                EXPECT_GT(shared_bytes(), 256 * KiB);
            }
            EXPECT_NE(caught([&] { file.close(); }).code, Errc::ok);
        };
        for (int i = 0; i < 10; ++i) {
            abandon_one();
            EXPECT_LE(shared_bytes(), 64 * KiB) << "after " << i + 1 << " by " << transport;
        }
    }
}

TEST(Memory, FollowsTheData)
{
    Scratch const scratch;
    for (auto const kind : {Kind::in_turn, Kind::pieces, Kind::parts}) {
        Part const part(ranks());
        Options options;
        options.direct = Direct::never;
        auto const bytes = number("MEMORY_BYTES", 4 * KiB);
        auto const used = use(part.comm(), scratch.path("file"), kind, 1, bytes, options);
        auto const bound = bytes == 4 * KiB ? 5 * KiB * ranks() + 256 * KiB : INT64_MAX;
        EXPECT_LE(used.shared, bound) << "kind " << static_cast<int>(kind);
        if (rank() == 0)
            std::printf("  %d ranks, kind %d: %lld KiB and %lld KiB shared\n", ranks(), static_cast<int>(kind),
                        static_cast<long long>(used.own / KiB), static_cast<long long>(used.shared / KiB));
    }
}

}  // namespace
}  // namespace tapioca::test
