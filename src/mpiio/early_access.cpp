#include "mpiio/early_access.hpp"

#include <utility>

namespace tapioca::mpiio {

namespace {

engine::Op op_of(Direction direction)
{
    return direction == Direction::write ? engine::Op::write : engine::Op::read;
}

}  // namespace

bool EarlyAccess::expected(Channel const& channel, declared::FileState const& file, std::string const& conditions,
                           Direction direction, PreparedAccess const& part) const
{
    auto const& place = place_[index(direction)];
    if (!place || *place >= channel.known.size() || in_vain_ >= most_in_vain) return false;
    if (file.staging || file.check() || !part.obstacle.empty()) return false;
    if (file.subfiles && direction == Direction::write) return false;  // all ranks of a group write a chunk together
    if (part.bytes > 0 && part.end - part.access.origin != part.bytes) return false;
    auto const& plan = channel.known[*place];
    if (plan.conditions != conditions || plan.shape != part.access.shape || &plan.step->file() != &file) return false;
    return plan.step->choice().is_direct(op_of(direction)) ||
           (direction == Direction::read && plan.step->went_straight());
}

bool EarlyAccess::go(Channel const& channel, declared::FileState& file, std::string const& conditions,
                     DataAccess const& request, PreparedAccess const& part)
{
    start_ = std::chrono::steady_clock::now();
    moved_ = 0;
    moving_ = 0;
    gone_ = expected(channel, file, conditions, request.direction, part);
    if (!gone_ || part.bytes == 0) return gone_;
    auto* const target = file.target();
    if (!target) return false;
    core::Stopwatch const watch(moving_);
    auto const data = std::span(part.data, static_cast<std::size_t>(part.bytes));
    if (request.direction == Direction::write) {
        part.pack(request);
        moved_ = data.size();
        return target->write(part.access.origin, data).has_value();
    }
    auto const got = target->read(part.access.origin, data);
    moved_ = got.value_or(0);
    return got.has_value();
}

std::int64_t EarlyAccess::arrived(DataAccess const& request, PreparedAccess const& part, declared::StepState& step)
{
    gone_ = false;
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    step.moved_apart(op_of(request.direction), {0, moving_, moved_, 0, part.bytes > 0 ? 1U : 0U}, seconds);
    return static_cast<std::int64_t>(moved_);
}

void EarlyAccess::in_vain()
{
    if (std::exchange(gone_, false)) ++in_vain_;
}

}  // namespace tapioca::mpiio
