#include "mpiio/open_for_engine.hpp"

#include <atomic>

#include <fmt/core.h>

#include "comm/team.hpp"
#include "mpiio/diagnostics.hpp"
#include "stage/find_logs.hpp"

namespace tapioca::mpiio {

namespace {

constexpr int never_staged = MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_SEQUENTIAL;

}  // namespace

/// If fewer ranks than the program has open a file together, the others may open it, too, and would not know of the
/// log. PnetCDF's aggregation within nodes works this way.
bool may_stage(OpenArguments const& opened, bool wished)
{
    return (opened.amode & never_staged) == 0 && (wished || opened.ranks >= comm::size_of(MPI_COMM_WORLD));
}

void tell_unstaged(OpenArguments const& opened)
{
    static std::atomic<bool> told = false;
    bool const by_mode = (opened.amode & never_staged) != 0;
    // If each rank opens files for itself, there may be as many files as ranks.
    if (by_mode || !opened.first() || (opened.alone() && comm::world_rank() != 0) || told.exchange(true)) return;
    tell(fmt::format(
        "tapioca: {}: is not staged: it was opened by {} of the job's {} ranks, and the others would not know of "
        "the log if they opened it, too; if they do not open it, give the hint tapioca_stage to MPI_File_open to "
        "stage it",
        opened.path, opened.ranks, comm::size_of(MPI_COMM_WORLD)));
}

void go_past_marker(OpenArguments const& opened, std::string const& what)
{
    if (stage::is_staged_now(opened.path)) return;
    bool const changes = !opened.read_only();
    if (changes && opened.first()) stage::let_others_in(opened.path);
    tell_left_alone(
        what + (changes ? "; do so before a program changes the file: `discard` keeps what this program writes now, "
                          "and `recover` refuses to write older data over it"
                        : ""));
}

std::shared_ptr<declared::FileState> open_file(OpenArguments const& opened, Hints const& hints, Channel& channel,
                                               HowToOpen const& how)
{
    auto const mode = opened.read_only() ? Mode::read : Mode::update;
    auto const open = [&](bool staged) {
        auto* const kept = channel.comm.get() == MPI_COMM_SELF ? &channel.session : nullptr;
        return declared::open_file(channel.comm.get(), opened.path, mode, {}, hints.get(),
                                   {.recovering = how.past_marker,
                                    .may_become_set = how.may_become_set,
                                    .has_independent_accesses = true,
                                    .may_stage = staged,
                                    .kept = kept});
    };
    if (!how.staged) return open(false);
    try {
        return open(true);
    } catch (Error const& error) {
        auto file = open(false);  // fails again if the stage is not the reason
        static std::atomic<bool> told = false;
        if (opened.first() && !told.exchange(true)) tell(fmt::format("{}; files are not staged", error.what()));
        return file;
    }
}

}  // namespace tapioca::mpiio
