#include "file/open_file.hpp"

#include <functional>
#include <utility>

#include <fmt/core.h>

#include "core/output.hpp"

namespace tapioca::file {

char const* name(Mode mode)
{
    return mode == Mode::create ? "create" : mode == Mode::update ? "update" : "read";
}

void raise(std::string const& path, std::string const& call, core::Failure const& failure)
{
    auto const who = failure.rank >= 0 ? fmt::format("rank {}: ", failure.rank) : std::string();
    auto text = core::printable(fmt::format("{}: {}{}: {}", call, who, path, failure.text));
    throw Raised(path, {failure.code, failure.sys_errno, failure.rank, std::move(text)});
}

target::OpenMode OpenFile::access() const
{
    return mode == Mode::read ? target::OpenMode::read : target::OpenMode::update;
}

void OpenFile::expect(target::FileIdentity const& identity)
{
    lazy_target.expect({place, access(), identity, first.host, settings.options.devnull.value_or(false)});
}

core::Status OpenFile::make_empty()
{
    if (mode != Mode::create || session->team().rank() != 0 || std::exchange(emptied_, true)) return {};
    return target::make_empty(target::descriptor(*lazy_target.if_open()));
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
