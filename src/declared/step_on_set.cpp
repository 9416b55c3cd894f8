// StepState on a set of subfiles: writes add chunks, and reads go straight to where ranks have written the same data.
#include <array>
#include <span>

#include <fmt/core.h>

#include "declared/step_state.hpp"
#include "declared/subfiled_step.hpp"
#include "declared/subfiles.hpp"
#include "subfile/straight.hpp"

namespace tapioca::declared {

/// What all ranks will do. If some rank's input is bad, the run is one in which nothing is moved and all ranks hear of
/// it. Collective.
StepState::RunOnSet StepState::choose_on_set(bool straight, bool done)
{
    if (agreed_ == Op::write) return {Op::write, false, false, true};
    std::array<std::int64_t, 5> all = {wanted_ == Op::write ? 0 : 1, wanted_ == Op::read ? 0 : 1, input_ ? 1 : 0,
                                       straight ? 1 : 0, done ? 1 : 0};
    file_->raise_if("finish", file_->session->agreement().least(all));
    if (all[0] == 0 && all[1] == 0)
        file_->raise("finish", {Errc::mismatch, 0, -1, "some ranks write in this step, and others read"});
    auto const otherwise = file_->mode == Mode::read ? Op::read : Op::write;
    auto const op = agreed_ ? *agreed_ : all[0] == 0 ? Op::write : all[1] == 0 ? Op::read : otherwise;
    bool const sound = all[2] == 1;
    if (op == Op::write && sound && file_->subfiles) agreed_ = op;
    bool const all_straight = op == Op::read && sound && all[3] == 1;
    return {op, all_straight, all_straight && all[4] == 1, sound};
}

/// True if the run adds chunks to the set, or reads from it without aggregators.
bool StepState::start_on_set(bool background)
{
    if (!file_->set) return false;
    if (wanted_ == Op::write) straight_.clear();
    bool const on_nodes = !file_->set->node_of.empty();
    bool const mine_straight = wanted_ != Op::write && input_ && !on_nodes && find_straight();
    // If all ranks did so last time, they most likely will again, and need to agree only once.
    bool const ahead = mine_straight && read_straight_;
    auto const read = ahead ? read_straight() : core::Status();
    auto const [op, straight, done, sound] = choose_on_set(mine_straight, ahead && read);
    bool const from_nodes = on_nodes && op == Op::read && sound;
    if (!straight && !from_nodes && (op == Op::read || !file_->subfiles)) return false;
    file_->require_same("start", "the direction", op == Op::write ? "write" : "read");
    file_->require_same("start", "the base offset", std::to_string(base_));
    read_from_nodes_ = false;
    read_straight_ = straight;
    auto const fetched = from_nodes ? read_from_nodes() : core::Status();
    on_set_ = straight ? OnSet::straight : from_nodes ? OnSet::from_nodes : OnSet::chunk;
    if (from_nodes) {
        read_from_nodes_ = true;
        on_set_status_ = fetched;
    } else if (straight) {
        on_set_status_ = ahead ? read : read_straight();
        straight_is_agreed_ = done;
    } else {
        file_->subfiles->advance();
        on_set_status_ = agreed_ ? start_chunk(background) : file_->session->agreement().agree(input_);
    }
    // From here on, a rank that runs out of memory is noticed by the others; before, they may be waiting inside MPI.
    file_->session->in_flight = true;
    return true;
}

/// Finds where this rank's data lies; true if all of it can be read straight from there. Local.
bool StepState::find_straight()
{
    straight_.clear();
    auto* const set = dynamic_cast<subfile::SetTarget*>(file_->target());
    if (!set || !set->look()) return false;  // the read itself finds out why
    for (std::size_t var = 0; var < variables().size(); ++var) {
        if (relaid_[var]) return false;
        auto pieces = subfile::straight_pieces(*set, *variables()[var], base_);
        if (!pieces) return false;
        for (auto const& piece : *pieces) straight_.emplace_back(var, piece);
    }
    return true;
}

core::Status StepState::read_straight()
{
    auto& times = straight_times_ = {};
    core::Stopwatch const watch(times.draining);
    for (auto const& [var, piece] : straight_) {
        if (auto status = subfile::read_piece(piece, data_[var]); !status) return status;
        times.bytes += static_cast<std::uint64_t>(piece.length);
        ++times.calls;
    }
    return {};
}

Moved StepState::end_straight()
{
    file_->watch("finish");
    auto status = std::exchange(on_set_status_, {});
    if (on_set_ == OnSet::straight && !straight_is_agreed_) status = file_->session->agreement().agree(status);
    on_set_ = OnSet::no;
    file_->session->in_flight = false;
    forget();
    auto& direction = file_->account.read;
    if (!past_the_log_) {
        ++direction.steps;
        direction.bytes += status ? straight_times_.bytes : 0;
    }
    moved_apart(Op::read, straight_times_, inside_);
    file_->raise_if("finish", status);
    return {straight_times_.bytes, 0};
}

/// Begins to write the chunk of this rank's group. Collective over the group.
core::Status StepState::start_chunk(bool background)
{
    auto& subfile = file_->subfiles->of_step(plan().job.pattern.bytes);
    return subfile.within_group([&]() -> core::Status {
        // The groups of another set may be others.
        if (chunk_ && chunk_->step().file().session != subfile.file()->session) chunk_.reset();
        if (!chunk_)
            chunk_ =
                std::make_unique<SubfiledStep>(subfile, in_order_of_memory(variables()), plan().job.pattern.dense());
        subfile.make_room(chunk_->bytes());
        chunk_->go_to(subfile, base_);
        auto& step = chunk_->step();
        for (std::size_t var = 0; var < variables().size(); ++var) {
            if (!supplied_[var]) continue;
            if (relaid_[var])
                step.supply(var, data_[var], sections_.at(var).shape, Op::write);
            else
                step.supply(var, data_[var], variables()[var]->bytes(), Op::write);
        }
        step.agreed_on(Op::write);
        step.start(background);
        return {};
    });
}

/// Ends a run that adds chunks. Collective.
Moved StepState::end_chunk()
{
    Moved moved;
    bool const begun = chunk_ && chunk_->step().under_way();
    file_->watch(begun && chunk_->step().choice().now().in_background() ? "wait" : "finish");
    auto status = on_set_status_;
    if (begun)
        status = chunk_->subfile().within_group([&] {
            moved = chunk_->step().wait();
            return chunk_->note();
        });
    on_set_ = OnSet::no;
    file_->session->in_flight = false;
    on_set_status_ = {};
    bool const known = status ? false : status.error().rank >= 0;  // all ranks have heard of it already
    if (!known) status = file_->session->agreement().agree(status);
    forget();
    file_->raise_if("finish", status);
    return moved;
}

std::string StepState::explain_subfiles() const
{
    if (!file_->subfiles) return {};
    auto text = file_->subfiles->describe();
    if (file_->set->has_tier()) text += plan::explain_levels(plan());
    if (!chunk_) return text + "the plan above is for reading; that for writing is made with the first write\n";
    auto const& subfile = chunk_->step().file();
    return text + "the plan above is for reading; for writing, within the group:\n" +
           plan::explain(chunk_->step().plan(), settings::describe(subfile.settings));
}

}  // namespace tapioca::declared
