// tapioca-join: the MPI program behind `tapioca subfile join`. One process is enough; several share the work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/team.hpp"
#include "core/host.hpp"
#include "core/output.hpp"
#include "core/units.hpp"
#include "recover/progress.hpp"
#include "recover/ranks.hpp"
#include "subfile/join.hpp"

namespace {

namespace comm = tapioca::comm;
namespace core = tapioca::core;
namespace subfile = tapioca::subfile;
using subfile::Join;
using tapioca::Errc;

struct JoinArguments {
    std::string path;
    std::string output;
    bool keep = false;
    bool live = false;
};

int me()
{
    return comm::world_rank();
}

int processes()
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

core::Status agree(core::Status const& status)
{
    return comm::agree(MPI_COMM_WORLD, status);
}

/// Which boots of which hosts take part, as one number; 0 if that is not known of all. Collective.
std::uint64_t kernels()
{
    auto const boot = core::boot_id();
    std::uint64_t const mine = boot.empty() ? 0 : core::digest(boot);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(processes()));
    MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.front() == 0) return 0;
    std::string text;
    for (auto const one : all) text += fmt::format("{:x} ", one);
    return std::max<std::uint64_t>(core::digest(text), 1);
}

/// A join, step by step. Every member function is collective.
class Joining {
public:
    explicit Joining(JoinArguments const& arguments) : a_(arguments), progress_(me() == 0, arguments.live) {}

    /// The result is the same on every process.
    core::Result<int> run()
    {
        auto const removed = remove_the_rest();
        if (!removed) return tl::unexpected(removed.error());
        if (*removed) return 0;
        if (auto status = begin(); !status) return tl::unexpected(status.error());
        auto const start = std::chrono::steady_clock::now();
        auto status = agree(copy_share());
        if (status) status = agree(join_->sync());
        if (status) status = agree(me() == 0 ? join_->finish(a_.keep) : core::Status());
        if (!status) return tl::unexpected(explained(status.error()));
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - start;
        if (me() == 0) tell(taken.count());
        return 0;
    }

private:
    /// If an earlier join was ended when there was nothing left but to remove the subfiles, this is done. Returns
    /// whether it was so.
    core::Result<bool> remove_the_rest() const
    {
        core::Status status;
        std::uint64_t removed = 0;
        auto const stub =
            me() == 0 && a_.output.empty() && !a_.keep ? subfile::find_stub(a_.path) : tl::unexpected(core::Failure());
        if (stub && !*stub) {
            auto const done = Join::finish_removal(a_.path);
            if (!done) status = tl::unexpected(done.error());
            removed = done && *done ? 1 : 0;
        }
        if (auto agreed = agree(status); !agreed) return tl::unexpected(agreed.error());
        MPI_Bcast(&removed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (removed > 0 && me() == 0)
            fmt::print("{}: was joined already; removed the subfiles, which an earlier join had left\n",
                       core::printable(a_.path));
        return removed > 0;
    }

    core::Status begin()
    {
        auto opened = Join::open(a_.path, a_.output);
        core::Status status;
        if (opened)
            join_ = std::move(*opened);
        else
            status = tl::unexpected(opened.error());
        if (status = agree(status); !status) return status;
        auto const boots = kernels();
        if (status = agree(me() == 0 ? join_->prepare(boots) : core::Status()); !status) return status;
        return agree(me() == 0 ? core::Status() : join_->attach());
    }

    /// Copies every so manieth chunk.
    core::Status copy_share()
    {
        auto const there = join_->done();
        if (me() == 0 && there > 0)
            fmt::print(stderr, "tapioca: {}: goes on where an earlier join was: {} of {} parts are there\n",
                       core::printable(a_.path), there, join_->chunks());
        std::vector<std::uint64_t> mine;
        std::uint64_t bytes = 0;
        std::uint64_t number = 0;
        for (std::uint64_t chunk = 0; chunk < join_->chunks(); ++chunk) {
            if (join_->is_done(chunk)) continue;
            if (number++ % static_cast<std::uint64_t>(processes()) != static_cast<std::uint64_t>(me())) continue;
            mine.push_back(chunk);
            bytes += static_cast<std::uint64_t>(join_->bytes_of(chunk));
        }
        core::Status status;
        progress_.begin(processes() > 1 ? "joining, share of process 0:" : "joining", bytes);
        for (auto const chunk : mine) {
            if (status = join_->copy(chunk); !status) break;
            progress_.add(static_cast<std::uint64_t>(join_->bytes_of(chunk)));
        }
        if (status) progress_.end();
        if (!status && me() == 0 && a_.live) fmt::print(stderr, "\n");
        return status;
    }

    /// With what to do about it.
    [[nodiscard]] core::Failure explained(core::Failure failure) const
    {
        if (failure.code == Errc::no_space)
            failure.text = fmt::format(
                "{}: {}: the subfiles are as they were. With more room, the same command goes "
                "on where it stopped; or remove {}*",
                join_->temporary(), failure.text, join_->temporary());
        return failure;
    }

    void tell(double seconds) const
    {
        auto const& made = a_.output.empty() ? a_.path : a_.output;
        auto const* const left = !a_.output.empty() ? "the set is as it was"
                                 : a_.keep          ? "kept the subfiles"
                                                    : "removed the subfiles";
        fmt::print("{}: a plain file of {}, in {:.1f} s; {}\n", core::printable(made),
                   core::format_bytes(static_cast<std::uint64_t>(join_->size())), seconds, left);
    }

    JoinArguments const& a_;
    recover::Progress progress_;
    std::unique_ptr<Join> join_;
};

}  // namespace

int main(int argc, char** argv)
{
    JoinArguments a;
    a.live = ::isatty(STDERR_FILENO) != 0;
    CLI::App app("Makes one plain file of a set of subfiles, which it replaces when it is complete and durable.");
    app.name("tapioca subfile join");
    app.add_option("PATH", a.path, "the file that consists of subfiles")->required();
    app.add_option("-o,--output", a.output, "make this file, and leave the set as it is");
    app.add_flag("--keep", a.keep, "do not remove the subfiles");
    app.add_flag("--live", a.live, "redraw one line of progress instead of printing many");
    if (auto const status = recover::parse(app, argc, argv)) return *status;
    a.path = subfile::resolved(a.path);
    return recover::on_all_ranks(app.get_name(), argc, argv, [&] { return Joining(a).run(); });
}
