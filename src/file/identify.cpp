#include "file/identify.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/host.hpp"

namespace tapioca::file {

namespace {

/// Some file systems show a new name, or one that was looked up before it existed, late on other hosts.
core::Result<std::unique_ptr<target::Target>> open_patiently(OpenFile const& file)
{
    auto opened = target::open_file(file.place, file.access());
    for (int pause_ms = 1; !opened && opened.error().sys_errno == ENOENT && pause_ms <= 1024; pause_ms *= 2) {
        auto const directory = file.place.substr(0, file.place.rfind('/') + 1);
        core::Descriptor const looked(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
        opened = target::open_file(file.place, file.access());
    }
    return opened;
}

/// This rank's path leads to another file or, with an errno, to none.
core::Failure elsewhere(OpenFile const& file, int sys_errno)
{
    auto const& first = file.first;
    auto const host = core::host_name();
    auto const found = sys_errno == 0 ? std::string("another file")
                                      : fmt::format("nothing that can be opened ({})", std::strerror(sys_errno));
    core::Failure failure{Errc::mismatch, sys_errno, -1, {}};
    if (file.place != first.place)
        failure.text =
            fmt::format("the path {} on {} is {}, unlike rank 0's {} on {}: all ranks must open the same file",
                        file.place, host, found, first.place, first.host);
    else
        failure.text = fmt::format(
            "on {} this is {}, unlike on {}, where rank 0 opened it: use a path that all hosts share (a directory of "
            "each "
            "host's own cannot hold the file; with TAPIOCA_TARGET=ssd:{} the data can stay in such a directory, and "
            "with TAPIOCA_SUBFILE=node each host writes a file of its own, if the path itself is shared)",
            host, found, first.host, file.place.substr(0, file.place.rfind('/')));
    return failure;
}

/// What this rank finds under its path.
struct Sight {
    core::Status status;
    target::FileIdentity identity = {};
    std::unique_ptr<target::Target> opened = {};
    bool unsure = false;
};

/// Opens the file and compares it with what rank 0 has opened. Local.
Sight look(OpenFile const& file)
{
    Sight sight;
    bool const may_be_late = file.place == file.first.place && target::kernel_number() != file.first.identity.kernel;
    auto opened = may_be_late ? open_patiently(file) : target::open_file(file.place, file.access());
    if (!opened) {
        auto const& failure = opened.error();
        sight.status = failure.code == Errc::not_found || file.place != file.first.place
                           ? tl::unexpected(elsewhere(file, failure.sys_errno))
                           : tl::unexpected(failure);
        return sight;
    }
    auto const identity = target::identity_of((*opened)->descriptor());
    if (!identity) {
        sight.status = tl::unexpected(identity.error());
        return sight;
    }
    sight.identity = *identity;
    auto const verdict = target::compare(file.first.identity, *identity);
    if (verdict == target::Verdict::different) sight.status = tl::unexpected(elsewhere(file, 0));
    sight.unsure = verdict == target::Verdict::unsure;
    sight.opened = std::move(*opened);
    return sight;
}

/// What the first rank of this node has seen, on all ranks of the node, since rank 0 may have another kernel and other
/// mounts. Collective.
target::FileIdentity seen_on_node(OpenFile const& file, Sight const& mine)
{
    auto const& team = file.session->team();
    if (!file.session->several_nodes()) return file.first.identity;
    auto seen = mine.identity;
    bool const first = team.node_rank() == 0;
    auto const numbers = team.sum_on_node({first ? seen.device : 0, first ? seen.inode : 0});
    seen.device = numbers[0];
    seen.inode = numbers[1];
    return seen;
}

}  // namespace

void require_same_file(OpenFile& file)
{
    auto& session = *file.session;
    auto const& team = session.team();
    bool const own_path = file.place != file.first.place;
    Sight mine;
    if (team.rank() == 0)
        mine.identity = file.first.identity;
    else if (file.mode != file.first.mode)
        mine.status = core::fail(
            Errc::mismatch, fmt::format("the mode is {}, unlike rank 0's {}", name(file.mode), name(file.first.mode)));
    else if (own_path || (session.several_nodes() && team.node_rank() == 0))
        mine = look(file);
    auto const on_node = seen_on_node(file, mine);
    file.expect(own_path ? mine.identity : on_node);
    if (mine.opened) file.lazy_target.keep(std::move(mine.opened));  // while it is open, the file keeps its inode

    std::array<std::int64_t, 2> all = {mine.status ? 0 : -1, mine.unsure ? -1 : 0};
    file.raise_if("open", session.agreement().least(all));
    bool const failed = all[0] != 0;
    bool const unsure = all[1] != 0;
    if (!failed && !unsure) return;
    std::optional<target::Probe> probe;  // exists until all ranks have looked for it
    if (unsure) {
        if (team.rank() == 0) probe.emplace(file.place, file.target()->descriptor());
        auto const evidence = session.agreement().broadcast(probe ? probe->evidence() : std::string());
        if (!evidence) file.raise("open", evidence.error());
        if (mine.unsure && !target::confirms(*evidence, file.place, file.target()->descriptor()))
            mine.status = tl::unexpected(elsewhere(file, 0));
    }
    file.raise_if("open", session.agreement().agree(mine.status));
}

}  // namespace tapioca::file
