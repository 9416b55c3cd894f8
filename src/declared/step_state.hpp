// StepState: what stands behind Step: the buffers that were supplied for it, and its run, through the log or not.
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
    /// The same from memory that is not packed: `first` is the first element. `shape` may be what is wrong with it.
    void supply(std::size_t var, std::byte* first, core::Result<pattern::MemoryShape> const& shape, Op op);
    void start(bool background);
    bool progress();
    Moved wait();
    /// Its runs go to the file itself and do not count as steps: the drop-in library, which has flushed before, counts
    /// calls.
    void past_the_log() { past_the_log_ = true; }
    [[nodiscard]] std::uint64_t received(std::size_t var) const { return choice_.now().received(var); }
    void rebase(std::int64_t offset);
    void retarget(std::shared_ptr<FileState> file);
    /// Makes the run under preparation fail on every rank, with the first such failure of the lowest rank.
    void spoil(core::Status const& failure) { core::keep_first(input_, failure); }
    /// All ranks have just agreed to run this step in this direction, with input that is good: nothing need be said of
    /// it again. For the next run. Local; on all ranks.
    void agreed_on(Op all) { agreed_ = all; }
    /// A run has come about without start(): every rank has moved its own data. Local.
    void moved_apart(Op op, engine::Times const& times, double seconds);
    /// Forgets what was supplied. What was supplied counts for one run, whether that comes about or not.
    void forget();
    /// What was supplied for a run that never came, if so.
    [[nodiscard]] core::Status forgotten() const;
    [[nodiscard]] std::string called(std::size_t var) const;
    [[nodiscard]] plan::Plan const& plan() const { return choice_.plan(); }
    /// The ways that its runs can go.
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
    pattern::Variables relaid_;  ///< variables whose memory is not packed, as it lies; else null
    std::vector<bool> supplied_;
    std::optional<Op> wanted_;
    std::optional<Op> agreed_;     ///< by all ranks
    core::Status input_;           ///< the first thing wrong with what this rank supplied
    std::optional<Moved> staged_;  ///< the run went to the log, and only wait() is missing
    double inside_ = 0;

    /// A variable over the section that was supplied for it last, which comes again with the next run.
    struct RelaidVariable {
        pattern::MemoryShape shape;
        std::shared_ptr<pattern::Variable const> variable;  ///< null if the section is packed in truth
        pattern::Layout places;                             ///< of its bytes, in their packed order
    };
    std::map<std::size_t, RelaidVariable> sections_;
};

}  // namespace tapioca::declared
