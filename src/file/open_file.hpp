// OpenFile: the open file as all its ranks know it: which file it is, how this rank accesses it, its settings, and how
// failures become the errors that users see.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <tapioca/tapioca.hpp>

#include "core/forks.hpp"
#include "engine/planning.hpp"
#include "engine/session.hpp"
#include "plan/learner.hpp"
#include "settings/settings.hpp"
#include "subfile/set_directory.hpp"
#include "target/lazy_file.hpp"

namespace tapioca::subfile {
class PeerService;
class Peers;
}  // namespace tapioca::subfile

namespace tapioca::file {

class OpenFile {
public:
    OpenFile() = default;
    OpenFile(OpenFile const&) = delete;
    OpenFile& operator=(OpenFile const&) = delete;

    std::shared_ptr<engine::Session> session;
    std::string path;   ///< as it was given to rank 0, for messages
    std::string place;  ///< the absolute path of the file that this rank opens
    Mode mode = Mode::read;
    settings::Settings settings;
    machine::Storage storage;
    std::shared_ptr<engine::DiscoveredMachine> around;
    bool open = false;
    /// The file that rank 0 has opened, as all ranks know it.
    struct OpenedByRank0 {
        std::string place;
        std::string host;
        Mode mode = Mode::read;
        target::FileIdentity identity;
    } first;
    /// If the file is a set of subfiles: which, and how this opening adds to it. The same on all ranks, but for the
    /// lock.
    struct Set {
        subfile::Stub stub;
        bool made_now = false;            ///< the file becomes a set with this opening
        bool adds = false;                ///< this opening may add chunks, in subfiles of its own
        std::uint64_t generation = 0;     ///< that the index will have
        std::uint64_t epoch = 0;          ///< the latest so far
        std::uint32_t first_subfile = 0;  ///< that of group 0
        std::string layout = {};          ///< which ranks are a group, as in the setting `subfile`
        core::Descriptor lock = {};       ///< on rank 0
        // If its subfiles lie on a tier of the nodes (file/on_tier.hpp):
        std::string on_tier = {};                    ///< this node's directory for them
        std::map<std::uint32_t, int> node_of = {};   ///< the node that has a subfile; the same on all ranks
        std::uint32_t numbers = 0;                   ///< a group's next subfile has the number of its last one and this
        std::shared_ptr<subfile::Peers> peers = {};  ///< if ranks reach other nodes' subfiles by themselves
        std::shared_ptr<subfile::PeerService> service = {};  ///< then, on the first rank of each node
        [[nodiscard]] bool has_tier() const { return !stub.tier.empty(); }
    };
    std::optional<Set> set;
    /// The set on a tier that a file of Mode::create was before.
    std::optional<subfile::Stub> replaced;
    bool within_set = false;                ///< the file is a subfile of a set
    bool may_become_set = false;            ///< so that a file of Mode::update may become one if it is empty
    bool has_independent_accesses = false;  ///< ranks will read and write by themselves
    bool made_file = false;                 ///< on rank 0: this opening has made the file
    bool recovering = false;                ///< the file is opened in order to recover its logs
    target::LazyFile lazy_target;           ///< the file as this rank accesses it

    /// The file, opened at the first call. Null if that failed; target_status() gives the reason. Local.
    target::Target* target() { return lazy_target.get(); }
    [[nodiscard]] core::Status const& target_status() const { return lazy_target.status(); }
    /// How this rank opens the file once it exists.
    [[nodiscard]] target::OpenMode access() const;
    /// Sets the file that this rank must find whenever it opens the path from now on. Local.
    void expect(target::FileIdentity const& identity);
    /// If this opening adds chunks to a set: writes variables of all ranks as chunks. `data`: where the places of their
    /// layouts are counted from. Collective; the same Status on every rank.
    std::function<core::Status(pattern::Variables const& variables, std::byte* data)> write_chunks;
    /// Makes these chunks durable. Collective; the same Status on every rank.
    std::function<core::Status()> sync_chunks;
    /// The directory of the set's subfiles, as this rank finds it.
    [[nodiscard]] std::string set_directory() const { return subfile::beside(place, set->stub.directory); }
    /// On rank 0: empties a file of Mode::create, and makes it a set of subfiles if it is to be one; once. Only after
    /// everything else has succeeded: a file that cannot be opened for all ranks keeps its content. Local.
    core::Status make_ready();
    /// On rank 0: removes the empty file that this opening has made, if it cannot be opened for all ranks after all.
    /// Local.
    void unmake();

    /// What this job says about itself in a set. @pre the groups can be formed
    [[nodiscard]] subfile::WriterFacts writer_facts() const;

    /// Plans a step for the variables of this rank. The same Status on every rank. Collective.
    [[nodiscard]] core::Result<plan::Plan> plan(pattern::Variables const& variables) const;
    /// Plans again, with other options than the file's.
    [[nodiscard]] core::Result<plan::Plan> plan(pattern::Variables const& variables, Options const& options) const;
    /// Whether repeated steps try other ways than the planned one.
    [[nodiscard]] plan::Learning learning() const;
    /// Whether check mode is on, in which ranks compare their arguments.
    [[nodiscard]] bool check() const { return settings.options.check.value_or(false); }

    /// Throws the failure that the ranks agreed on. `call` is the name of the public call.
    [[noreturn]] void raise(std::string const& call, core::Failure const& failure) const;
    void raise_if(std::string const& call, core::Status const& agreed) const;
    /// This rank ran out of memory in a collective call. The others, which may wait for it, get the same error.
    [[noreturn]] void lose(std::string const& call);
    /// True in a process that was forked from the one that opened the file. It has no part in the exchange with the
    /// other ranks, and does not have the threads. Nothing here may be used or destroyed there.
    [[nodiscard]] bool forked() const { return core::forks() != forks_; }
    /// Throws in a forked process. Local.
    void require_own(char const* call) const;
    /// Throws unless the file is open. Local; the same on all ranks, since close() is collective. From here on, waits
    /// belong to `call`.
    void require_open(char const* call) const;
    /// From now on, waits of this thread belong to `call`, with the file's time-out. Local.
    void watch(char const* call) const;
    /// Throws if a step is under way. Local; the same on all ranks.
    void require_idle(std::string const& call) const;
    /// In check mode: fails, on all ranks, unless all pass the same value; collective then. Otherwise does nothing.
    [[nodiscard]] core::Status compare(std::string const& what, std::string const& value) const;
    /// In check mode: throws unless all ranks pass the same value; collective then. Otherwise does nothing.
    void require_same(std::string const& call, std::string const& what, std::string const& value) const;

private:
    core::Status make_empty();
    core::Status make_set();

    bool ready_ = false;
    unsigned const forks_ = core::forks();
};

char const* name(Mode mode);

/// The Error that users see, together with the failure, for callers inside the library that return it as a value.
class Raised : public Error {
public:
    /// `plainly`: the failure's text without call, rank and path.
    Raised(std::string const& path, core::Failure what, std::string plainly)
        : Error(what.code, what.rank, what.sys_errno, path, "tapioca: " + what.text),
          failure(std::move(what)),
          text(std::move(plainly))
    {
    }
    core::Failure failure;
    std::string text;
};

/// Throws a failure of a call on the file named `path`.
[[noreturn]] void raise(std::string const& path, std::string const& call, core::Failure const& failure);

}  // namespace tapioca::file
