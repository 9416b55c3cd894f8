// What stands behind File and Step.
#pragma once

#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <tapioca/tapioca.hpp>

#include "api/staging.hpp"
#include "core/forks.hpp"
#include "engine/pool.hpp"
#include "pattern/read_once.hpp"
#include "plan/plan.hpp"
#include "settings/settings.hpp"
#include "target/identity.hpp"

namespace tapioca::api {

enum class Op { write, read };

/// What happened to a file on one rank, for the report.
struct Account {
    struct Direction {
        std::uint64_t steps = 0;
        std::uint64_t bytes = 0;       ///< of this rank's variables
        std::uint64_t overlapped = 0;  ///< drained between start() and wait()
        engine::Times times;
        double waiting = 0;
        double inside = 0;  ///< start(), finish() and wait(), from call to return
    };
    double planning = 0;
    std::uint64_t planning_bytes = 0;  ///< that this rank gave to the others
    Direction write;
    Direction read;
    std::vector<std::string> plans;  ///< JSON of each declared step
    std::uint64_t bookkeeping_bytes = 0;
    std::vector<std::pair<std::string, std::string>> more;  ///< what others add: a name, and JSON
};

class StepState;

class FileState : public std::enable_shared_from_this<FileState> {
public:
    FileState() = default;
    FileState(FileState const&) = delete;
    FileState& operator=(FileState const&) = delete;
    /// Complains of steps that were never run, if there was no close() to do it, and of a log that stays.
    ~FileState();

    std::shared_ptr<engine::Pool> pool;
    std::string path;   ///< as rank 0 was given it, for messages
    std::string place;  ///< as this rank was given it, but absolute: what it opens
    Mode mode = Mode::read;
    settings::Settings settings;
    machine::Storage storage;
    std::shared_ptr<engine::Surroundings> around;
    Account account;
    std::unique_ptr<Staging> staging;  ///< if writes go to a log first
    bool open = false;
    /// What rank 0 has opened, as all ranks know it.
    struct First {
        std::string place;
        std::string host;
        Mode mode = Mode::read;
        target::Identity identity;
    } first;
    bool recovering = false;  ///< the marker and the logs are being dealt with

    /// This rank's descriptor, opened at the first call. Null if that failed: then target_status() tells why.
    target::Target* target();
    [[nodiscard]] core::Status const& target_status() const { return target_status_; }
    /// The same without opening it. Null if it is not open.
    [[nodiscard]] target::Target* target_if_open() const { return target_.get(); }
    core::Status close_target();
    /// The file once more, the one that all ranks mean: another one of that name is a failure. Local.
    [[nodiscard]] core::Result<std::unique_ptr<target::Target>> open_again() const;
    /// Takes what this rank has opened as its descriptor. Local.
    void keep(std::unique_ptr<target::Target> target);
    /// What this rank must find from now on whenever it opens the file. Local.
    void expect(target::Identity const& identity) { expected_ = identity; }
    /// On rank 0: takes out what a file of Mode::create had in it, once. Not before all else has gone well: a file
    /// that cannot be opened for all ranks keeps its content. Local.
    core::Status make_empty();

    /// A step was dropped with variables that were supplied and never moved: close() says so. Local.
    void note_forgotten(core::Status const& what) { core::keep_first(forgotten_, what); }
    /// What was forgotten of this file's steps, dropped ones or not. Local.
    [[nodiscard]] core::Status forgotten() const;
    std::vector<StepState const*> steps;  ///< that will run on this file

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
    /// In check mode: throws unless all ranks pass the same. Collective then.
    void require_same(std::string const& call, std::string const& what, std::string const& value) const;

private:
    std::unique_ptr<target::Target> target_;
    core::Status target_status_;
    target::Identity expected_;
    bool emptied_ = false;
    core::Status forgotten_;
    unsigned const forks_ = core::forks();
};

/// What is told of a staged file for which MPI, or its life, ends before close().
std::string never_closed(std::string const& path);

class StepState {
public:
    StepState(std::shared_ptr<FileState> file, pattern::Variables variables, plan::Plan plan);
    StepState(StepState const&) = delete;
    StepState& operator=(StepState const&) = delete;
    ~StepState();

    void supply(std::size_t var, std::byte* data, std::size_t bytes, Op op);
    void start(bool background);
    bool progress();
    Moved wait();
    /// Writes go to the file itself: the step is part of a flush.
    void past_the_log() { past_the_log_ = true; }
    [[nodiscard]] std::uint64_t received(std::size_t var) const;
    void rebase(std::int64_t offset);
    void retarget(std::shared_ptr<FileState> file);
    /// Makes the run under preparation fail on every rank, with the first such failure of the lowest rank.
    void spoil(core::Status const& failure) { core::keep_first(input_, failure); }
    /// Forgets what was supplied. What was supplied counts for one run, whether that comes about or not.
    void forget();
    /// What was supplied for a run that never came, if so.
    [[nodiscard]] core::Status forgotten() const;
    [[nodiscard]] plan::Plan const& plan() const { return plan_; }
    [[nodiscard]] FileState const& file() const { return *file_; }

private:
    void lay_out();
    void begin_run(bool background);
    [[nodiscard]] Moved end_run();
    [[noreturn]] void lose(char const* call);
    [[nodiscard]] Op begin();
    [[nodiscard]] bool start_staged();
    [[nodiscard]] Op staged_direction();
    void write_staged();
    [[nodiscard]] plan::Route const& route() const { return op_ == Op::write ? plan_.write : plan_.read; }
    [[nodiscard]] engine::Site const& site() const { return sites_[op_ == Op::write ? 0 : 1]; }
    [[nodiscard]] bool one_sided() const
    {
        return route().networked() && route().network.transport == plan::Transport::rma;
    }
    [[nodiscard]] bool uses_worker(bool background) const;
    [[nodiscard]] bool does_io() const;
    void check_input();
    void prepare(bool background);
    [[nodiscard]] std::span<pattern::Layout const> layouts(std::size_t var);

    std::shared_ptr<FileState> file_;
    pattern::Variables variables_;
    plan::Plan plan_;
    std::shared_ptr<engine::Surroundings> around_;  ///< that the plan was made for
    std::vector<engine::Site> sites_;               ///< of the plan's write and read
    std::int64_t base_ = 0;
    bool base_is_sane_ = true;
    bool past_the_log_ = false;

    // the run that is being put together or under way
    std::vector<std::byte*> data_;
    std::vector<bool> supplied_;
    std::optional<Op> wanted_;
    Op op_ = Op::write;
    core::Status input_;  ///< the first thing wrong with what this rank supplied
    std::unique_ptr<engine::Run> run_;
    std::optional<Moved> staged_;  ///< the run went to the log, and only wait() is missing
    bool background_ = false;
    std::uint64_t drained_at_start_ = 0;
    bool prepared_[2][2] = {};  ///< [read][with the worker]
    double waiting_ = 0;
    double inside_ = 0;

    std::vector<std::uint64_t> received_;
    std::map<std::size_t, pattern::ReadOnce>
        read_once_;  ///< of the variables that overlap themselves, once they are read
};

/// Runs the body of a collective call. A rank without the memory to go on cannot come to where the others wait for it:
/// all get the error instead.
template <class Body>
auto collective(FileState& file, char const* call, Body body)
{
    try {
        return body();
    } catch (std::bad_alloc const&) {
    } catch (std::length_error const&) {  // of a vector or string, which no machine can hold
    }
    file.lose(call);
}

/// What File::open() does. `recovering`: although there is a marker, and whatever the settings say, the file itself is
/// written to. Without `may_stage` the file gets no log, whatever the settings say. `kept`: where the pool is kept, if
/// not with the communicator. Collective.
std::shared_ptr<FileState> open_file(MPI_Comm comm, std::string const& path, Mode mode, Options const& options,
                                     MPI_Info info, bool recovering = false, bool may_stage = true,
                                     std::shared_ptr<engine::Pool>* kept = nullptr);

/// Throws on all ranks unless all mean the file that rank 0 has opened, and in the same mode. Collective.
void require_same_file(FileState& file);

/// For a collective call before a file is open: until the ranks have agreed on settings each goes by its own time-out.
/// The watchdog must be held for as long as the call lasts. Local.
[[nodiscard]] std::shared_ptr<comm::Watchdog> watch_unopened(MPI_Comm comm, char const* call, std::string const& path,
                                                             Options const& options, MPI_Info info);

/// How others reach what stands behind the public types.
struct Inside {
    static FileState& of(File& file) { return *file.state_; }
    static std::shared_ptr<FileState> const& shared(File const& file) { return file.state_; }
    static StepState& of(Step& step) { return *step.state_; }
    static File file(std::shared_ptr<FileState> state) { return File(std::move(state)); }
};

/// Plans a step for what this rank moves. Collective.
std::unique_ptr<StepState> declare(std::shared_ptr<FileState> const& file, pattern::Variables const& variables);

char const* name(Mode mode);

/// Adds the closed file to the report on rank 0. Collective. A report that cannot be written is a warning.
void write_report(FileState const& file);

/// Adds the account of a file, a JSON object, to this process's report at `path`. Local; as above.
void add_to_report(std::string const& path, std::string const& account);

/// A plan as a JSON object, with the settings that went into it.
std::string to_json(plan::Plan const& plan, settings::Settings const& settings);
/// The settings as "name = value (origin)".
std::vector<std::string> describe(settings::Settings const& settings);

/// Check mode: fails, naming both ranks, if two ranks' pieces overlap. Collective.
core::Status find_overlap(comm::Team const& team, pattern::Variables const& variables, pattern::Summary const& total);

/// Of the bytes that this rank's requests have written, those that a later epoch of another rank has as well; of equal
/// epochs the highest rank's count as the later. Collective.
std::vector<Extent> owned_by_others(comm::Team const& team, stage::Content& content, pattern::Summary const& total);

}  // namespace tapioca::api
