// HACC-IO: every rank writes the nine arrays of its particles, and reads them back. With layout aos, the file has one
// rank after the other, each with its nine arrays. With layout soa, it has one variable after the other, each with the
// arrays of all ranks. Ranks have different numbers of particles; a scan tells each rank its place.
// usage: hacc [FILE [aos|soa]]
#include <tapioca/tapioca.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

namespace {

enum class Layout { aos, soa };

/// The variables XX YY ZZ VX VY VZ phi pid mask of a rank with `mine` of all `total` particles; `before` particles are
/// on lower ranks. Each variable is one extent; together they have 38 bytes per particle. Local.
tapioca::Pattern hacc_pattern(Layout layout, std::int64_t mine, std::int64_t before, std::int64_t total,
                              std::int64_t file_offset = 0)
{
    std::int64_t sizes_before = 0;  // bytes per particle of the variables before this one
    auto const next = [&](std::int64_t size) {
        auto const offset =
            layout == Layout::aos ? before * 38 + mine * sizes_before : total * sizes_before + before * size;
        sizes_before += size;
        return tapioca::Extent{file_offset + offset, mine * size};
    };
    tapioca::Pattern pattern;
    for (auto const* const name : {"XX", "YY", "ZZ", "VX", "VY", "VZ", "phi"}) pattern.add<float>(name, {next(4)});
    pattern.add<std::int64_t>("pid", {next(8)});
    pattern.add<std::uint16_t>("mask", {next(2)});
    return pattern;
}

struct Particles {
    explicit Particles(std::size_t number) : pid(number), mask(number) { floats.fill(std::vector<float>(number)); }
    bool operator==(Particles const&) const = default;

    std::array<std::vector<float>, 7> floats;  ///< XX YY ZZ VX VY VZ phi
    std::vector<std::int64_t> pid;
    std::vector<std::uint16_t> mask;
};

/// Fills in particles, the first of which has the number `first`.
void compute(Particles& particles, std::int64_t first)
{
    for (std::size_t i = 0; i < particles.pid.size(); ++i) {
        auto const number = first + static_cast<std::int64_t>(i);
        for (std::size_t v = 0; v < 7; ++v)
            particles.floats[v][i] = static_cast<float>(number * 10 + static_cast<std::int64_t>(v));
        particles.pid[i] = number;
        particles.mask[i] = static_cast<std::uint16_t>(number % 1000);
    }
}

/// True if this rank has read what it wrote. Collective.
bool write_and_read(char const* path, Layout layout, int rank)
{
    std::int64_t const mine = 1000 + 10 * rank;
    std::int64_t before = 0;
    std::int64_t total = 0;
    MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) before = 0;  // MPI leaves it undefined there
    MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);

    Particles particles(static_cast<std::size_t>(mine));
    compute(particles, before);
    auto file = tapioca::File::open(MPI_COMM_WORLD, path, tapioca::Mode::create);
    auto step = file.declare(hacc_pattern(layout, mine, before, total));
    for (std::size_t v = 0; v < 7; ++v) step.write(v, particles.floats[v]);
    step.write(7, particles.pid);
    step.write(8, particles.mask);
    step.finish();

    Particles back(static_cast<std::size_t>(mine));
    for (std::size_t v = 0; v < 7; ++v) step.read(v, back.floats[v]);
    step.read(7, back.pid);
    step.read(8, back.mask);
    step.finish();
    file.close();
    return back == particles;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    auto const layout = argc > 2 && std::string_view(argv[2]) == "soa" ? Layout::soa : Layout::aos;
    int result = 0;
    try {
        if (!write_and_read(argc > 1 ? argv[1] : "hacc.dat", layout, rank)) {
            std::fprintf(stderr, "rank %d: wrong particles\n", rank);
            result = 1;
        }
    } catch (tapioca::Error const& error) {
        if (rank == 0) std::fprintf(stderr, "%s\n", error.what());
        result = 1;
    }
    MPI_Finalize();
    return result;
}
