// StepState: the state behind Step: the buffers that were supplied for it, and its run, through the log or not.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "declared/choice.hpp"
#include "declared/file_state.hpp"
#include "engine/fetch.hpp"
#include "pattern/memory_shape.hpp"
#include "subfile/straight.hpp"

namespace tapioca::declared {

class SubfiledStep;

char const* name(Op op);

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
    [[nodiscard]] bool under_way() const { return on_set_ != OnSet::no || choice_.now().under_way(); }
    /// The step's runs go to the file itself and do not count as steps. For the drop-in library, which flushes before
    /// and counts calls.
    void past_the_log() { past_the_log_ = true; }
    [[nodiscard]] std::uint64_t received(std::size_t var) const
    {
        bool const from_nodes = read_from_nodes_ && !from_logs_;
        if (from_nodes) return var < received_.size() ? received_[var] : 0;
        bool const all = read_straight_ || from_logs_;
        return all && var < variables().size() ? variables()[var]->bytes() : choice_.now().received(var);
    }
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
    /// Whether the last read went straight to the subfiles of a set. The same on all ranks.
    [[nodiscard]] bool went_straight() const { return read_straight_; }
    /// The ways in which this step can be run.
    [[nodiscard]] Choice& choice() { return choice_; }
    [[nodiscard]] Choice const& choice() const { return choice_; }
    [[nodiscard]] FileState const& file() const { return *file_; }
    /// How the data is written if the file is a set of subfiles, for people; otherwise empty.
    [[nodiscard]] std::string explain_subfiles() const;

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

    // step_on_log.cpp
    [[nodiscard]] bool start_staged();
    [[nodiscard]] Op staged_direction();
    void write_staged();
    [[nodiscard]] bool start_staged_read();
    [[nodiscard]] std::optional<std::vector<flush::WantedPiece>> wanted_pieces() const;
    void read_over();

    // step_on_set.cpp
    struct RunOnSet {
        Op op;
        bool straight;
        bool done;   ///< all ranks have read what they wanted
        bool sound;  ///< no rank's input is bad
    };
    [[nodiscard]] bool start_on_set(bool background);
    [[nodiscard]] RunOnSet choose_on_set(bool straight, bool done);
    core::Status start_chunk(bool background);
    [[nodiscard]] Moved end_chunk();
    [[nodiscard]] bool find_straight();
    core::Status read_straight();
    [[nodiscard]] Moved end_straight();
    // step_from_nodes.cpp
    core::Status find_on_nodes(subfile::SetTarget& set, std::vector<engine::FetchPiece>& pieces, bool& unknown);
    core::Status read_from_nodes();

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
    std::optional<Moved> staged_;  ///< set if the run moved its data to or from logs and only wait() is missing
    bool from_logs_ = false;       ///< the last run was a read that took everything from logs
    bool over_file_ = false;       ///< the run reads the file, and then what is in the logs
    enum class OnSet { no, chunk, straight, from_nodes };
    OnSet on_set_ = OnSet::no;    ///< whether the run adds a chunk to a set of subfiles, or how it reads from it
    core::Status on_set_status_;  ///< why it could not begin
    std::vector<std::pair<std::size_t, subfile::StraightPiece>> straight_;  ///< what is to be read, by variable
    bool read_straight_ = false;                                            ///< the last run did so
    bool straight_is_agreed_ = false;                                       ///< all ranks know that all have read
    bool read_from_nodes_ = false;                                          ///< the last run did so
    std::vector<std::uint64_t> received_;                                   ///< then: bytes of each variable
    engine::Times straight_times_;
    double inside_ = 0;

    /// A variable laid over the section that was last supplied for it. The next run usually supplies the same section.
    struct RelaidVariable {
        pattern::MemoryShape shape;
        std::shared_ptr<pattern::Variable const> variable;  ///< null if the section happens to be packed
        pattern::Layout places;                             ///< of the bytes, in their packed order
    };
    std::map<std::size_t, RelaidVariable> sections_;
    std::unique_ptr<SubfiledStep> chunk_;  ///< how this step adds chunks; made when the first one is written
};

}  // namespace tapioca::declared
