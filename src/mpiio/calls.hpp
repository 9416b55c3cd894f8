// Calls: the data access functions by name, for the account of a file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tapioca::mpiio {

// clang-format off
#define TAPIOCA_CALLS(X)                                                                                            \
    X(read_at) X(write_at) X(iread_at) X(iwrite_at) X(read) X(write) X(iread) X(iwrite)                             \
    X(read_shared) X(write_shared) X(iread_shared) X(iwrite_shared)                                                 \
    X(iread_at_all) X(iwrite_at_all) X(iread_all) X(iwrite_all)                                                     \
    X(read_at_all) X(write_at_all) X(read_all) X(write_all)                                                         \
    X(read_at_all_begin) X(write_at_all_begin) X(read_all_begin) X(write_all_begin)                                 \
    X(read_ordered) X(write_ordered) X(read_ordered_begin) X(write_ordered_begin)
// clang-format on

#define X(name) name,
enum class Call { TAPIOCA_CALLS(X) count };
#undef X
inline constexpr auto calls = static_cast<std::size_t>(Call::count);

std::string_view name(Call call);

/// What became of a rank's calls on one file. Counts are this rank's.
class Calls {
public:
    void served(Call call) { ++served_[static_cast<std::size_t>(call)]; }
    void passed(Call call, std::string const& why);

    [[nodiscard]] std::array<std::uint64_t, calls> const& all_served() const { return served_; }
    [[nodiscard]] std::array<std::uint64_t, calls> all_passed() const;
    /// Why calls of that kind were passed on, most frequent first.
    [[nodiscard]] std::map<std::string, std::uint64_t> const& reasons(Call call) const
    {
        return passed_[static_cast<std::size_t>(call)];
    }

private:
    std::array<std::uint64_t, calls> served_ = {};
    std::array<std::map<std::string, std::uint64_t>, calls> passed_;
};

}  // namespace tapioca::mpiio
