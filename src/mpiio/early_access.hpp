// EarlyAccess: the ranks meet before an access, to decide about it, and after it, to hear of each other's errors. If a
// rank expects every rank to move its own data, as in the previous access, it does its part before the first meeting.
// If all ranks did so without an error, they need not meet again. Otherwise the access is done from the beginning,
// which moves the same bytes once more. All functions are local, and nothing needs to be the same on all ranks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/stopwatch.hpp"
#include "declared/file_state.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/prepared_access.hpp"

namespace tapioca::mpiio {

class EarlyAccess {
public:
    /// Does this rank's part if it expects that all ranks will. Returns whether it did so without an error.
    bool go(Channel const& channel, declared::FileState& file, std::string const& conditions, DataAccess const& request,
            PreparedAccess const& part);
    /// All ranks went ahead, with data that fits the plan, so the access is done. Returns the number of bytes moved.
    std::int64_t arrived(DataAccess const& request, PreparedAccess const& part, declared::StepState& step);
    /// Not all ranks went ahead; if this rank did, its work was in vain.
    void in_vain();
    /// The access has run with the plan at this place.
    void ran(Direction direction, std::size_t place) { place_[index(direction)] = place; }

private:
    static constexpr int most_in_vain = 3;  // for each open file

    [[nodiscard]] static std::size_t index(Direction direction) { return direction == Direction::write ? 0 : 1; }
    [[nodiscard]] bool expected(Channel const& channel, declared::FileState const& file, std::string const& conditions,
                                Direction direction, PreparedAccess const& part) const;

    std::array<std::optional<std::size_t>, 2> place_;  ///< of the plan of the last write, and of the last read
    int in_vain_ = 0;

    // the access that is under way
    bool gone_ = false;
    std::uint64_t moved_ = 0;
    double moving_ = 0;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace tapioca::mpiio
