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

// Why those that are not served on most files are not; nothing for the others.
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

/// What became of a rank's calls on one file. Counts are this rank's. Any thread.
class Calls {
public:
    /// A call that is not served, for the reason that there is for its kind.
    void passed(Call call) { never_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed); }
    void passed(Call call, std::string const& why);
    void served(Call call) { served_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed); }
    void clear();

    /// Of those served, by call, then of those passed on.
    [[nodiscard]] std::vector<std::uint64_t> counts() const;
    /// Why calls of that kind were passed on, and how often.
    [[nodiscard]] std::map<std::string, std::uint64_t> reasons(Call call) const;

private:
    std::array<std::atomic<std::uint64_t>, calls> never_ = {};
    std::array<std::atomic<std::uint64_t>, calls> served_ = {};
    mutable std::mutex mutex_;  ///< of the rest
    std::array<std::map<std::string, std::uint64_t>, calls> passed_;
};

}  // namespace tapioca::mpiio
