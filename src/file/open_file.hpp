// OpenFile: the open file as all its ranks know it: which file it is, how this rank reaches it, its settings, and
// failures as the errors that users see.
#pragma once

#include <memory>
#include <string>

#include <tapioca/tapioca.hpp>

#include "core/forks.hpp"
#include "engine/planning.hpp"
#include "engine/session.hpp"
#include "plan/learner.hpp"
#include "settings/settings.hpp"
#include "target/lazy_file.hpp"

namespace tapioca::file {

class OpenFile {
public:
    OpenFile() = default;
    OpenFile(OpenFile const&) = delete;
    OpenFile& operator=(OpenFile const&) = delete;

    std::shared_ptr<engine::Session> session;
    std::string path;   ///< as rank 0 was given it, for messages
    std::string place;  ///< as this rank was given it, but absolute: what it opens
    Mode mode = Mode::read;
    settings::Settings settings;
    machine::Storage storage;
    std::shared_ptr<engine::DiscoveredMachine> around;
    bool open = false;
    /// What rank 0 has opened, as all ranks know it.
    struct OpenedByRank0 {
        std::string place;
        std::string host;
        Mode mode = Mode::read;
        target::FileIdentity identity;
    } first;
    bool recovering = false;       ///< the marker and the logs are being dealt with
    target::LazyFile lazy_target;  ///< the file as this rank reaches it

    /// The file, opened at the first call. Null if that failed: then target_status() tells why. Local.
    target::Target* target() { return lazy_target.get(); }
    [[nodiscard]] core::Status const& target_status() const { return lazy_target.status(); }
    /// What this rank does with a file that exists.
    [[nodiscard]] target::OpenMode access() const;
    /// What this rank must find from now on whenever it opens the file. Local.
    void expect(target::FileIdentity const& identity);
    /// On rank 0: takes out what a file of Mode::create had in it, once. Not before all else has gone well: a file
    /// that cannot be opened for all ranks keeps its content. Local.
    core::Status make_empty();

    /// Plans a step for what this rank moves. The same Status on every rank. Collective.
    [[nodiscard]] core::Result<plan::Plan> plan(pattern::Variables const& variables) const;
    /// The same with other options than the file's, of what has been planned before.
    [[nodiscard]] core::Result<plan::Plan> plan(pattern::Variables const& variables, Options const& options) const;
    /// Whether steps that run again try other ways than the planned one.
    [[nodiscard]] plan::Learning learning() const;
    /// Check mode is on: ranks compare what they pass.
    [[nodiscard]] bool check() const { return settings.options.check.value_or(false); }

    /// Throws what the ranks agreed on. `call` is the public call's name.
    [[noreturn]] void raise(std::string const& call, core::Failure const& failure) const;
    void raise_if(std::string const& call, core::Status const& agreed) const;
    /// This rank ran out of memory in a collective call: the others, which may wait for it, get the same error.
    [[noreturn]] void lose(std::string const& call);
    /// True in a process that was forked from the one that opened the file. It has no part in the exchange with the
    /// other ranks, and none of the threads: nothing here may be used or destroyed there.
    [[nodiscard]] bool forked() const { return core::forks() != forks_; }
    /// Throws in such a process. Local.
    void require_own(char const* call) const;
    /// Throws unless the file is open. Local; the same on all ranks, since close() is collective.
    /// From here on waits are those of that call.
    void require_open(char const* call) const;
    /// What this thread waits for from now on belongs to `call`, and the file's time-out holds. Local.
    void watch(char const* call) const;
    /// Throws if a step is under way. Local; the same on all ranks.
    void require_idle(std::string const& call) const;
    /// In check mode: a failure, the same on all ranks, unless all pass the same. Collective then.
    [[nodiscard]] core::Status compare(std::string const& what, std::string const& value) const;
    /// In check mode: throws unless all ranks pass the same. Collective then.
    void require_same(std::string const& call, std::string const& what, std::string const& value) const;

private:
    bool emptied_ = false;
    unsigned const forks_ = core::forks();
};

char const* name(Mode mode);

/// The Error that users see, and the failure in its words, for those inside who pass it on as a value.
class Raised : public Error {
public:
    Raised(std::string const& path, core::Failure what)
        : Error(what.code, what.rank, what.sys_errno, path, "tapioca: " + what.text), failure(std::move(what))
    {
    }
    core::Failure failure;
};

/// Throws a failure of a call on the file that is called `path`.
[[noreturn]] void raise(std::string const& path, std::string const& call, core::Failure const& failure);

}  // namespace tapioca::file
