// Calls: the data access functions by name, for the account of a file.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tapioca::mpiio {

// The second column says why calls that are not served on most files are passed on; `none` for the others.
// clang-format off
#define TAPIOCA_CALLS(X)                                                                                            \
    X(read_at, independent) X(write_at, independent) X(iread_at, independent) X(iwrite_at, independent)             \
    X(read, independent) X(write, independent) X(iread, independent) X(iwrite, independent)                         \
    X(read_shared, shared) X(write_shared, shared) X(iread_shared, shared) X(iwrite_shared, shared)                 \
    X(read_ordered, shared) X(write_ordered, shared) X(read_ordered_begin, shared) X(write_ordered_begin, shared)   \
    X(iread_at_all, nonblocking) X(iwrite_at_all, nonblocking)                                                      \
    X(iread_all, nonblocking) X(iwrite_all, nonblocking)                                                            \
    X(read_at_all, none) X(write_at_all, none) X(read_all, none) X(write_all, none)                                 \
    X(read_at_all_begin, none) X(write_at_all_begin, none) X(read_all_begin, none) X(write_all_begin, none)
// clang-format on

#define X(name, why) name,
enum class Call { TAPIOCA_CALLS(X) count };
#undef X
inline constexpr auto calls = static_cast<std::size_t>(Call::count);

std::string_view name(Call call);
constexpr bool is_blocking_collective(Call call)
{
    return call == Call::read_at_all || call == Call::write_at_all || call == Call::read_all || call == Call::write_all;
}

constexpr bool is_ordered(Call call)
{
    return call == Call::read_ordered || call == Call::write_ordered || call == Call::read_ordered_begin ||
           call == Call::write_ordered_begin;
}

/// How a rank's calls on one file were served or passed on. Counts are this rank's. Any thread.
class Calls {
public:
    /// Counts a call that is passed on for the reason that applies to its kind.
    void passed(Call call) { never_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed); }
    void passed(Call call, std::string const& why);
    void served(Call call) { served_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed); }
    void clear();

    /// The numbers of served calls, by call, followed by those of calls passed on.
    [[nodiscard]] std::vector<std::uint64_t> counts() const;
    /// Why calls of this kind were passed on, and how often.
    [[nodiscard]] std::map<std::string, std::uint64_t> reasons(Call call) const;

private:
    std::array<std::atomic<std::uint64_t>, calls> never_ = {};
    std::array<std::atomic<std::uint64_t>, calls> served_ = {};
    mutable std::mutex mutex_;  ///< protects the members below
    std::array<std::map<std::string, std::uint64_t>, calls> passed_;
};

}  // namespace tapioca::mpiio
