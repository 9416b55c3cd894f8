// The example of the README: every rank writes its block of a 2-d array, in three time steps, to one file.
#include <tapioca/tapioca.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int result = 0;
    try {
        auto const block = tapioca::block_of({.shape = {1024, 1024}, .ranks = ranks, .rank = rank});
        std::vector<double> data(static_cast<std::size_t>(block.count[0] * block.count[1]));

        auto file = tapioca::File::open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "array.dat", tapioca::Mode::create);
        tapioca::Pattern pattern;
        auto const velocity = pattern.add<double>("velocity", block);
        auto step = file.declare(pattern);
        if (rank == 0) std::fputs(step.plan().explain().c_str(), stdout);
        for (int t = 0; t < 3; ++t) {
            data.assign(data.size(), t + rank / 100.0);  // compute
            step.rebase(t * 1024 * 1024 * static_cast<std::int64_t>(sizeof(double)));
            step.write(velocity, data);
            step.finish();
        }
        file.close();
    } catch (tapioca::Error const& error) {
        if (rank == 0) std::fprintf(stderr, "%s\n", error.what());
        result = 1;
    }
    MPI_Finalize();
    return result;
}
