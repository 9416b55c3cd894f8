// Transfer: a planned step that can be run any number of times. It moves bytes between the ranks' buffers and the file,
// and all ranks get the same result. Its users deal with public errors, the log and the account.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/buffer_layout.hpp"
#include "engine/discovered_machine.hpp"
#include "engine/run.hpp"
#include "engine/session.hpp"
#include "pattern/read_once.hpp"
#include "pattern/summary.hpp"
#include "plan/plan.hpp"

namespace tapioca::engine {

enum class Op { write, read };

class Transfer {
public:
    Transfer(std::shared_ptr<Session> session, std::shared_ptr<DiscoveredMachine> around, pattern::Variables variables,
             plan::Plan plan);
    Transfer(Transfer const&) = delete;
    Transfer& operator=(Transfer const&) = delete;
    /// If a run is under way, the session is abandoned, since the other ranks' counters no longer fit.
    ~Transfer();

    [[nodiscard]] plan::Plan const& plan() const { return plan_; }
    [[nodiscard]] pattern::Variables const& variables() const { return variables_; }
    /// What was announced last.
    [[nodiscard]] Op op() const { return op_; }

    /// Tells the others what this rank is about to do: `mine`, or nothing if it has no data. Returns whether the run is
    /// a write or a read; ranks without data learn it from the others, and it is `otherwise` if nobody has data.
    /// Collective.
    Op announce(std::optional<Op> mine, bool spoiled, Op otherwise);
    /// The same if all ranks have just agreed to run this, and no rank's input is bad. Local.
    void take_as_announced(Op all);
    /// This transfer runs what another transfer of the same step has announced. Local.
    void assume(Op op) { op_ = op; }
    /// The announced run does not take place, and all ranks know this. No rank begins the next run before all ranks
    /// have heard of this one. Collective.
    void call_off();
    /// Gets memory, windows and threads ready for the announced run. The same Status on every rank. Collective, but
    /// waits for nobody the second time.
    core::Status prepare(bool background);

    /// One run.
    struct Input {
        std::span<std::byte* const> data;  ///< a buffer for each variable, valid until wait()
        /// For each variable whose buffer is not packed: the variable as it lies in the buffer; otherwise null. Also
        /// valid until wait().
        std::span<std::shared_ptr<pattern::Variable const> const> relaid;
        std::int64_t base = 0;               ///< is added to all offsets; the same on all ranks
        bool spoiled = false;                ///< this rank's input is bad: it takes part, but moves nothing
        std::int64_t block_bytes = 0;        ///< block size of the file
        target::LazyFile* target = nullptr;  ///< opened if the run needs it; valid until wait()
    };
    /// Begins the run that was announced and prepared. Local.
    void start(Input const& input, bool background);
    [[nodiscard]] bool under_way() const { return run_ != nullptr; }
    [[nodiscard]] bool in_background() const { return background_; }
    /// Copies what can be copied now. Local. Returns true when this rank has nothing more to copy.
    [[nodiscard]] bool advance() { return run_->advance(false); }

    /// The result of a run.
    struct RunOutcome {
        core::Status status;  ///< the same on every rank
        Op op = Op::write;
        std::uint64_t bytes = 0;             ///< bytes of this rank's variables
        std::uint64_t overlapped_bytes = 0;  ///< bytes that this rank drained between start() and wait()
        double waiting = 0;                  ///< seconds
        Times times;
    };
    /// Ends the run. `input` is a failure if something that this rank supplied was wrong. Collective.
    RunOutcome wait(core::Status const& input);
    /// Bytes of a variable that the last read took from the file.
    [[nodiscard]] std::uint64_t received(std::size_t var) const { return var < received_.size() ? received_[var] : 0; }
    /// This rank cannot go on with its run. The caller tells the others. Local.
    void stop() { run_.reset(); }

private:
    void lay_out();
    [[nodiscard]] plan::Route const& route() const { return op_ == Op::write ? plan_.write : plan_.read; }
    [[nodiscard]] BufferLayout const& buffer_layout() const { return buffer_layouts_[op_ == Op::write ? 0 : 1]; }
    [[nodiscard]] bool one_sided() const;
    [[nodiscard]] bool uses_worker(bool background) const;
    [[nodiscard]] bool does_io() const;
    [[nodiscard]] std::shared_ptr<pattern::Variable const> const& in_memory(std::size_t var) const;
    [[nodiscard]] std::span<pattern::Layout const> layouts(std::size_t var);
    [[nodiscard]] Context context_for(Input const& input);

    std::shared_ptr<Session> session_;
    std::shared_ptr<DiscoveredMachine> around_;  ///< the machine that the plan was made for
    pattern::Variables variables_;
    plan::Plan plan_;
    std::vector<BufferLayout> buffer_layouts_;  ///< for writing and for reading
    bool prepared_[2][2] = {};                  ///< [read][with the worker]

    // the run that is being put together or under way
    Op op_ = Op::write;
    std::unique_ptr<Run> run_;
    std::span<std::byte* const> data_;
    pattern::Variables relaid_;  ///< as in Input; a run that is abandoned may outlive what its user holds
    bool background_ = false;
    std::uint64_t drained_at_start_ = 0;

    std::vector<std::uint64_t> received_;
    struct OverlappingRead {
        std::shared_ptr<pattern::Variable const> variable;  ///< as it lies in memory
        pattern::ReadOnce once;
    };
    std::map<std::size_t, OverlappingRead>
        read_once_;  ///< for variables that overlap themselves, from their first read on
};

}  // namespace tapioca::engine
