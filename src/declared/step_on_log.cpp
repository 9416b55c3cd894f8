// StepState on a staged file: writes go to the log, and reads take from the logs what is there.
#include <optional>
#include <utility>
#include <vector>

#include "declared/step_state.hpp"

namespace tapioca::declared {

/// Whether this run of a staged file is a write or a read. If every rank has data, each rank knows by itself. Otherwise
/// the ranks without data learn it from the others.
Op StepState::staged_direction()
{
    auto const& pattern = plan().job.pattern;
    if (pattern.ranks_with_data == 0) return Op::write;  // nothing is written
    if (pattern.ranks_with_data == pattern.ranks) return wanted_.value_or(Op::write);
    auto const op = announce();
    choice_.now().call_off();  // so that no rank is two steps ahead
    return op;
}

/// Local: a failure concerns only this rank, and all ranks hear of it at the next flush.
void StepState::write_staged()
{
    auto const check = file_->check();
    auto status = input_;
    if (check)
        status = file_->session->agreement().agree(status);
    else
        file_->staging->note_failure(status);
    try {
        for (std::size_t var = 0; var < variables().size() && status; ++var)
            status = file_->staging->write({*variables()[var], base_, data_of(var), static_cast<std::uint32_t>(var)});
    } catch (std::bad_alloc const&) {
        status = core::fail_errno(ENOMEM, "the log");
        file_->staging->note_failure(status);
    }
    forget();
    if (!status && status.error().rank < 0) status.error().rank = file_->session->team().rank();
    file_->raise_if("write to the log", status);
}

/// True if the run was a write and went to the log.
bool StepState::start_staged()
{
    if (!file_->staging || past_the_log_) return false;
    auto& staging = *file_->staging;
    staging.advance();
    check_input();
    auto const op = staged_direction();
    if (file_->check()) file_->require_same("start", "the direction", name(op));
    if (op == Op::read) return start_staged_read();
    Moved moved;
    for (auto const& variable : variables()) moved.bytes += variable->bytes();
    write_staged();
    auto& account = file_->account.write;
    ++account.steps;
    account.bytes += moved.bytes;
    staged_ = moved;
    return true;
}

/// Where this rank's data lies in the file and in memory; nothing if there are too many pieces.
std::optional<std::vector<flush::WantedPiece>> StepState::wanted_pieces() const
{
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    for (std::size_t var = 0; var < variables().size(); ++var) {
        bytes += variables()[var]->bytes();
        for (auto const& layout : (relaid_[var] ? relaid_[var] : variables()[var])->layouts()) count += layout.pieces();
    }
    if (!flush::may_be_listed(count, static_cast<std::int64_t>(bytes))) return std::nullopt;
    std::vector<flush::WantedPiece> pieces;
    for (std::size_t var = 0; var < variables().size(); ++var) {
        auto const add = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            pieces.push_back({base_ + offset, length, data_[var] + place});
        };
        for (auto const& layout : (relaid_[var] ? relaid_[var] : variables()[var])->layouts())
            pattern::each_piece(layout, add);
    }
    return pieces;
}

/// True if the run took everything from the logs, so that only wait() is missing.
bool StepState::start_staged_read()
{
    auto& staging = *file_->staging;
    auto const& pattern = plan().job.pattern;
    auto const base = base_is_sane_ ? base_ : 0;
    auto const from = staging.prepare_read(base + pattern.begin, base + pattern.end, true,
                                           [&]() -> std::optional<std::vector<flush::WantedPiece>> {
                                               if (!input_) return std::nullopt;
                                               return wanted_pieces();
                                           });
    if (!from) file_->raise("read", from.error());
    over_file_ = *from == flush::ReadFrom::both;
    if (*from != flush::ReadFrom::logs) return false;
    auto const status = staging.read_logs({});
    forget();
    file_->raise_if("read", status);
    Moved moved;
    for (auto const& variable : variables()) moved.bytes += variable->bytes();
    auto& account = file_->account.read;
    ++account.steps;
    account.bytes += moved.bytes;
    from_logs_ = true;
    staged_ = moved;
    return true;
}

/// After the file was read: lays over it what is in the logs. Collective.
void StepState::read_over()
{
    if (!std::exchange(over_file_, false)) return;
    file_->raise_if("read", file_->staging->read_logs({}));
}

}  // namespace tapioca::declared
