// lost missing CALL: the last rank never makes that call. LOST_THREADS: with MPI_THREAD_MULTIPLE. lost WAY SEED: ranks
// open, declare, write and close files until one of them is lost, as described in loss.hpp; with the way `none`, their
// host may be lost.
#include <mpi.h>

#include <functional>
#include <map>
#include <vector>

#include <tapioca/tapioca.hpp>

#include "lost/loss.hpp"

/// In place of MPI's own, with LOST_STUCK: one that never comes back.
extern "C" __attribute__((visibility("default"))) int MPI_Abort(MPI_Comm comm, int code)
{
    while (std::getenv("LOST_STUCK")) ::pause();
    return PMPI_Abort(comm, code);
}

namespace {

using namespace tapioca;
using namespace tapioca::test;

constexpr std::int64_t each = 100'000;
int rank = 0;
int ranks = 1;

bool last()
{
    return rank == ranks - 1;
}

Options small_buffers()
{
    Options options;
    options.buffersize = 4096;
    options.direct = Direct::never;
    return options;
}

Pattern blocks()
{
    Pattern pattern;
    pattern.add({{rank * each, each}});
    return pattern;
}

void missing(std::string const& call)
{
    auto const come_to = [&](char const* name) {
        if (name == call && last()) never_come();
    };
    come_to("open");
    auto file = File::open(MPI_COMM_WORLD, "missing", Mode::create, small_buffers());
    come_to("declare");
    auto step = file.declare(blocks());
    std::vector<char> const data(each, 'x');
    step.write(0, data);
    step.finish();
    come_to("finish");
    step.write(0, data);
    step.finish();
    come_to("flush");
    file.flush();
    come_to("size");
    (void)file.size();
    come_to("sync");
    file.sync();
    come_to("close");
    file.close();
}

/// `anew`: on a communicator of its own each time, for which the program itself waits inside MPI, where nobody watches.
void work(Loss& loss, bool anew)
{
    std::vector<char> data(each, static_cast<char>('a' + rank));
    auto const until = MPI_Wtime() + 20;
    while (MPI_Wtime() < until) {
        loss.maybe();
        MPI_Comm comm = MPI_COMM_WORLD;
        if (anew) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        auto file = File::open(comm, "lost", Mode::create, small_buffers());
        loss.maybe();
        auto step = file.declare(blocks());
        for (int i = 0; i < 6; ++i) {
            loss.maybe();
            step.rebase(i * each);
            i == 4 ? step.read(0, data) : step.write(0, data);
            if (i % 2 == 0) step.finish();
            if (i % 2 == 0) continue;
            step.start();
            loss.maybe();
            step.wait();
        }
        file.sync();
        loss.maybe();
        file.close();
        if (anew) MPI_Comm_free(&comm);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, std::getenv("LOST_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) return 2;
    begin_job(rank);
    if (std::string(argv[1]) == "missing") {
        missing(argv[2]);
    } else {
        auto const seed = static_cast<unsigned>(std::atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD);
        Loss loss(argv[1], seed, rank == static_cast<int>(seed % static_cast<unsigned>(ranks)));
        if (rank == 0) (void)std::fclose(std::fopen("at_work", "w"));
        work(loss, std::string(argv[1]) != "none");
    }
    MPI_Finalize();
    return 0;
}
