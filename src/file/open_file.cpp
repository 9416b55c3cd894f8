#include "file/open_file.hpp"

#include <functional>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/output.hpp"
#include "file/groups.hpp"
#include "subfile/peers.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::file {

char const* name(Mode mode)
{
    return mode == Mode::create ? "create" : mode == Mode::update ? "update" : "read";
}

void raise(std::string const& path, std::string const& call, core::Failure const& failure)
{
    auto const who = failure.rank >= 0 ? fmt::format("rank {}: ", failure.rank) : std::string();
    auto text = core::printable(fmt::format("{}: {}{}: {}", call, who, path, failure.text));
    throw Raised(path, {failure.code, failure.sys_errno, failure.rank, std::move(text)}, failure.text);
}

target::OpenMode OpenFile::access() const
{
    return mode == Mode::read ? target::OpenMode::read : target::OpenMode::update;
}

void OpenFile::expect(target::FileIdentity const& identity)
{
    target::LazyFile::Expected expected{place, access(), identity, first.host,
                                        settings.options.devnull.value_or(false)};
    bool const by_peers = set && set->has_tier() && has_independent_accesses && session->several_nodes();
    if (by_peers && !set->peers) set->peers = std::make_shared<subfile::Peers>();
    if (set)
        expected.made_of = [directory = set_directory(), id = set->stub.identity, how = access(),
                            on_tier = set->on_tier, peers = set->peers](std::unique_ptr<target::Target> stub) {
            return std::make_unique<subfile::SetTarget>(std::move(stub), directory, id, how, on_tier, peers);
        };
    lazy_target.expect(std::move(expected));
}

core::Status OpenFile::make_ready()
{
    if (session->team().rank() != 0 || ready_) return {};
    auto status = mode == Mode::create ? make_empty() : core::Status();
    if (status && set && set->made_now) status = make_set();
    ready_ = status.has_value();  // otherwise whoever opens the file without a log tries again
    return status;
}

void OpenFile::unmake()
{
    struct stat found = {};
    bool const is_empty = std::exchange(made_file, false) && ::stat(place.c_str(), &found) == 0 && found.st_size == 0;
    if (is_empty) (void)::unlink(place.c_str());
}

core::Status OpenFile::make_empty()
{
    auto const fd = lazy_target.if_open()->descriptor();
    auto const before = subfile::read_stub(fd);
    if (!before || !*before) return target::make_empty(fd);
    // It was a set, which nobody may be writing to.
    auto const directory = subfile::beside(place, (*before)->directory);
    if (auto const opened = subfile::open_directory(directory); opened && subfile::is_live(opened->get()))
        return core::fail(Errc::invalid_state, "another job is writing its subfiles: wait until it ends");
    if (auto status = target::make_empty(fd); !status) return status;
    return subfile::remove_set_of(directory, (*before)->identity, first.identity.inode);
}

core::Status OpenFile::make_set()
{
    auto const fd = lazy_target.if_open()->descriptor();
    auto lock = subfile::make_set(set_directory(), set->stub.identity, writer_facts(), fd);
    if (!lock) return tl::unexpected(lock.error());
    auto const size = core::size_of(fd, "the file");
    auto status = size ? core::Status() : tl::unexpected(size.error());
    if (size && *size > 0)
        status = core::fail(Errc::invalid_state, "another job has just written to it: open it again");
    if (status) {
        status = subfile::write_stub(fd, set->stub);
        if (!status) (void)target::make_empty(fd);  // as a file of which the opening failed
    }
    if (!status) {
        (void)subfile::remove_set(set_directory());
        return status;
    }
    set->lock = std::move(*lock);
    subfile::link_stub(place, set_directory());
    return {};
}

subfile::WriterFacts OpenFile::writer_facts() const
{
    auto const& team = session->team();
    auto const groups = groups_of(set->layout, team, *around);
    auto const subfiles = (groups ? groups->count : 1) + (set->has_tier() ? 1 : 0);  // one of them for all ranks
    return {static_cast<std::uint32_t>(team.size()), static_cast<std::uint32_t>(team.nodes().size()),
            static_cast<std::uint32_t>(subfiles), set->layout, place.substr(place.rfind('/') + 1)};
}

core::Result<plan::Plan> OpenFile::plan(pattern::Variables const& variables) const
{
    return engine::make_plan({*session, *around, storage, settings.options, mode != Mode::read, check()}, variables);
}

core::Result<plan::Plan> OpenFile::plan(pattern::Variables const& variables, Options const& options) const
{
    return engine::make_plan({*session, *around, storage, options, mode != Mode::read, false}, variables);
}

plan::Learning OpenFile::learning() const
{
    auto const& wish = settings.options.learn;
    if (!wish || wish == "off") return plan::Learning::off;
    return wish == "always" ? plan::Learning::always : plan::Learning::on;
}

void OpenFile::raise(std::string const& call, core::Failure const& failure) const
{
    file::raise(path, call, failure);
}

void OpenFile::lose(std::string const& call)
{
    session->lose();
    raise(call, session->agreement().lost().error());
}

void OpenFile::raise_if(std::string const& call, core::Status const& agreed) const
{
    if (!agreed) raise(call, agreed.error());
}

void OpenFile::require_own(char const* call) const
{
    if (forked())
        raise(call, {Errc::invalid_state, 0, -1, "this process was forked from the one that opened the file"});
}

void OpenFile::require_open(char const* call) const
{
    require_own(call);
    if (!open) raise(call, {Errc::invalid_state, 0, -1, "the file is closed"});
    if (!comm::mpi_is_active()) raise(call, {Errc::invalid_state, 0, -1, "MPI has been finalised"});
    watch(call);
}

void OpenFile::watch(char const* call) const
{
    if (within_set) return;  // the waits belong to the call on the whole file
    session->watch(settings.options.timeout.value_or(settings::default_timeout), call, path);
}

void OpenFile::require_idle(std::string const& call) const
{
    if (session->in_flight)
        raise(call, {Errc::invalid_state, 0, -1, "a step is under way on this communicator: wait() for it first"});
}

core::Status OpenFile::compare(std::string const& what, std::string const& value) const
{
    if (!check()) return {};
    auto const& team = session->team();
    auto const rank = team.first_different(std::hash<std::string>{}(value));
    if (rank < 0) return {};
    core::Status mine;
    if (team.rank() == rank) mine = core::fail(Errc::mismatch, fmt::format("{} is {}, unlike rank 0's", what, value));
    return comm::agree(team.all(), mine);
}

void OpenFile::require_same(std::string const& call, std::string const& what, std::string const& value) const
{
    auto const agreed = compare(what, value);
    if (agreed) return;
    auto const named = comm::broadcast(session->team().all(), path);  // ranks may be about to use different files
    file::raise(named, call, agreed.error());
}

}  // namespace tapioca::file
