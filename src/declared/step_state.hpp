// StepState: the state behind Step: the buffers that were supplied for it, and its run, through the log or not.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "declared/choice.hpp"
#include "declared/file_state.hpp"
#include "pattern/memory_shape.hpp"

namespace tapioca::declared {

class StepState {
public:
    StepState(std::shared_ptr<FileState> file, pattern::Variables variables, plan::Plan plan);
    StepState(StepState const&) = delete;
    StepState& operator=(StepState const&) = delete;
    ~StepState();

    void supply(std::size_t var, std::byte* data, std::size_t bytes, Op op);
    /// The same for memory that is not packed. `first` is the first element. If the memory cannot be used, `shape`
    /// holds the error.
    void supply(std::size_t var, std::byte* first, core::Result<pattern::MemoryShape> const& shape, Op op);
    void start(bool background);
    bool progress();
    Moved wait();
    /// The step's runs go to the file itself and do not count as steps. For the drop-in library, which flushes before
    /// and counts calls.
    void past_the_log() { past_the_log_ = true; }
    [[nodiscard]] std::uint64_t received(std::size_t var) const { return choice_.now().received(var); }
    void rebase(std::int64_t offset);
    void retarget(std::shared_ptr<FileState> file);
    /// Makes the run that is being prepared fail on every rank, with the first such failure of the lowest rank.
    void spoil(core::Status const& failure) { core::keep_first(input_, failure); }
    /// All ranks have just agreed to run this step in this direction, and no rank's input is bad, so the next run need
    /// not be announced. Local; on all ranks.
    void agreed_on(Op all) { agreed_ = all; }
    /// A run took place without start(): every rank has moved its own data. Local.
    void moved_apart(Op op, engine::Times const& times, double seconds);
    /// Forgets what was supplied. It counts for one run, whether or not that run takes place.
    void forget();
    /// A failure if variables were supplied for a run that never took place.
    [[nodiscard]] core::Status forgotten() const;
    [[nodiscard]] std::string called(std::size_t var) const;
    [[nodiscard]] plan::Plan const& plan() const { return choice_.plan(); }
    /// The ways in which this step can be run.
    [[nodiscard]] Choice& choice() { return choice_; }
    [[nodiscard]] Choice const& choice() const { return choice_; }
    [[nodiscard]] FileState const& file() const { return *file_; }

private:
    [[nodiscard]] bool take_supply(std::size_t var, Op op);
    void spoil(std::size_t var, Op op, Errc code, std::string const& what);
    [[nodiscard]] core::Status relay(std::size_t var, pattern::MemoryShape const& shape);
    [[nodiscard]] stage::RequestData data_of(std::size_t var) const;
    void begin_run(bool background);
    void require_ready(bool background) const;
    void prepare(bool background);
    [[nodiscard]] Moved end_run();
    [[noreturn]] void lose(char const* call);
    [[nodiscard]] Op announce();
    [[nodiscard]] bool start_staged();
    [[nodiscard]] Op staged_direction();
    void write_staged();
    void check_input();
    void learn_from(Op op, bool in_background);
    [[nodiscard]] pattern::Variables const& variables() const { return choice_.variables(); }

    std::shared_ptr<FileState> file_;
    Choice choice_;
    std::int64_t base_ = 0;
    bool base_is_sane_ = true;
    bool past_the_log_ = false;

    // the run that is being put together or under way
    std::vector<std::byte*> data_;
    pattern::Variables relaid_;  ///< for variables whose memory is not packed: as they lie in memory; otherwise null
    std::vector<bool> supplied_;
    std::optional<Op> wanted_;
    std::optional<Op> agreed_;     ///< the direction that all ranks have agreed on
    core::Status input_;           ///< the first mistake in what this rank supplied
    std::optional<Moved> staged_;  ///< set if the run went to the log and only wait() is missing
    double inside_ = 0;

    /// A variable laid over the section that was last supplied for it. The next run usually supplies the same section.
    struct RelaidVariable {
        pattern::MemoryShape shape;
        std::shared_ptr<pattern::Variable const> variable;  ///< null if the section happens to be packed
        pattern::Layout places;                             ///< of the bytes, in their packed order
    };
    std::map<std::size_t, RelaidVariable> sections_;
};

}  // namespace tapioca::declared
