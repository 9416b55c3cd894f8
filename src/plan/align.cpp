#include "plan/align.hpp"

#include <algorithm>
#include <numeric>

#include "core/units.hpp"

namespace tapioca::plan {

namespace {

constexpr std::uint64_t least_stripe_round = core::MiB;
constexpr std::uint64_t most_stripe_round = 16 * core::MiB;

/// The integer nearest to `value` whose remainder modulo `row` is `rest`.
std::int64_t nearest_with_rest(std::int64_t value, std::int64_t rest, std::int64_t row)
{
    auto const up = ((rest - value) % row + row) % row;
    return up <= row / 2 ? value + up : value + up - row;
}

/// True if no partition grows by more than a `part`-th of its size and a stripe.
bool balanced(std::vector<std::int64_t> const& moved, std::vector<std::int64_t> const& cuts, std::int64_t stripe_bytes,
              int part)
{
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
        auto const before = cuts[p + 1] - cuts[p];
        auto const after = moved[p + 1] - moved[p];
        if (after < 0 || after > before + before / part + stripe_bytes) return false;
    }
    return true;
}

}  // namespace

std::int64_t unit_of(machine::Storage const& storage)
{
    bool const striped = storage.stripe_bytes > 0 && storage.stripe_bytes % storage.block_bytes == 0;
    return striped ? storage.stripe_bytes : storage.block_bytes;
}

std::uint64_t stripe_round(machine::Storage const& storage)
{
    auto round = static_cast<std::uint64_t>(unit_of(storage));
    auto const block = static_cast<std::uint64_t>(storage.block_bytes);
    if (round < least_stripe_round) round *= (least_stripe_round + round - 1) / round;
    while (round > most_stripe_round && round % (2 * block) == 0) round /= 2;
    return round;
}

std::vector<std::int64_t> stagger(std::vector<std::int64_t> cuts, std::int64_t stripe_bytes, int servers, int rows)
{
    auto const partitions = static_cast<std::int64_t>(cuts.size()) - 1;
    if (partitions < 2 || servers < 2) return cuts;
    // Partitions of n stripes begin n servers apart. If n and the number of servers have a common factor, the sequence
    // of first servers repeats before all servers had their turn. Then one extra stripe moves it on to the next server,
    // until all had their turn.
    auto const first = cuts.front() / stripe_bytes;
    auto const n = (cuts.back() / stripe_bytes - first) / partitions;
    auto const factor = std::gcd(n, std::int64_t{servers});
    auto const turn = servers / factor;
    auto moved = cuts;
    for (std::int64_t p = 1; p < partitions; ++p) {
        auto const rest = (first + n * p + p / turn % factor) % servers;
        auto& cut = moved[static_cast<std::size_t>(p)];
        cut = nearest_with_rest(cut / stripe_bytes, rest, servers) * stripe_bytes;
    }
    if (balanced(moved, cuts, stripe_bytes, std::max(4, rows))) return moved;
    auto const least = rows * servers * stripe_bytes;
    for (std::size_t p = 1; p + 1 < cuts.size(); ++p)
        if (cuts[p] - cuts[p - 1] < least || cuts[p + 1] - cuts[p] < least) moved[p] = cuts[p];
    return moved;
}

}  // namespace tapioca::plan
