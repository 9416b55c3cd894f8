#include "plan/predict_on_node.hpp"

#include <algorithm>
#include <cmath>

#include "core/index.hpp"
#include "core/units.hpp"

namespace tapioca::plan {

namespace {

// Costs inside a node, measured on a 16-core machine with 16 ranks (docs/design.md).
constexpr double copy_bw = 4e9;         // one rank, into or out of a shared buffer
constexpr double copy_alone_bw = 10e9;  // one rank, while the others wait for it
constexpr double piece_s = 8e-9;        // one small piece of such a copy
constexpr double start_write_s = 8e-6;  // filling the first round, beyond the cost of any step
constexpr double hand_over_s = 28e-6;   // from the last byte of a round that one rank fills to its writing
constexpr double start_read_s = 20e-6;
constexpr double crowded_start_s = 60e-6;   // additional time per core for each further rank that waits for its turn
constexpr double gain_by_reserving = 1.35;  // for one writer whose rounds were allocated before
constexpr std::uint64_t large_unit = 64 * core::KiB;  // writes on such boundaries use the file's large pages

using core::as_double;

}  // namespace

double crowding(Job const& job, Load const& load)
{
    return std::max(1.0, as_double(std::max<std::uint64_t>(1, load.ranks)) / std::max(1, job.cores));
}

double copy_seconds(Job const& job, Load const& load)
{
    return (as_double(load.most_bytes) / copy_bw + as_double(load.most_pieces) * piece_s) * crowding(job, load);
}

double read_volume(Job const& job, int readers)
{
    auto const range = as_double(static_cast<std::uint64_t>(job.pattern.end - job.pattern.begin));
    auto const around =
        as_double(job.pattern.spans) * pattern::Summary::span_bytes * readers * job.options.buffers.value_or(2);
    return sparse(job) ? std::min(range, around) : range;
}

namespace {

/// The average number of ranks that have data in the same slice of the file.
double ranks_in_a_round(Job const& job)
{
    auto const range = as_double(static_cast<std::uint64_t>(job.pattern.end - job.pattern.begin));
    auto const slices = std::max(1.0, std::ceil(range / pattern::Summary::span_bytes));
    return std::max(1.0, as_double(job.pattern.spans) / slices);
}

/// The value of a figure for this number of processes that write one file. It lies between that of one writer and that
/// of 16 writers on 16 cores, because processes wait for each other only as far as they run at the same time.
double contended(Job const& job, std::uint64_t writers, double alone, double of_16)
{
    auto const at_once = std::min<double>(as_double(writers), std::max(1, job.cores));
    return alone + (of_16 - alone) * std::clamp((at_once - 1) / 15, 0.0, 1.0);
}

/// Bytes per second that this number of writers together write to the file.
double drain_bandwidth(Job const& job, int writers)
{
    auto const& s = job.storage;
    if (!populates(job, writers)) {
        if (writers > 1 || !job.pattern.dense()) return s.contended_write_bw;
        return s.reserve == machine::Reserve::allocate ? s.write_bw * gain_by_reserving : s.write_bw;
    }
    // Populating takes cores, and more writers than the file system takes at a time hinder each other: 16 reach 0.7 of
    // what 6 do.
    auto const share = std::min<double>(writers, std::max(1, job.cores * 3 / 8)) / s.write_streams;
    return s.parallel_write_bw * (share <= 1 ? share : std::max(0.5, 1.2 - 0.2 * share));
}

/// Seconds of all writers' calls, without the time for their bytes: one after the other, since they take the file's
/// lock.
double drain_calls(Job const& job, int writers)
{
    auto const& s = job.storage;
    auto const round = populates(job, writers) ? s.parallel_write_round_bytes : s.write_round_bytes;
    auto const rounds = std::max<double>(writers, std::ceil(as_double(job.pattern.bytes) / as_double(round)));
    double const calls = populates(job, writers)                                         ? 3
                         : job.pattern.dense() && s.reserve != machine::Reserve::nothing ? 2
                                                                                         : 1;
    auto const holes =
        job.pattern.dense() ? 0.0 : as_double(job.pattern.pieces);  // as many calls as pieces, if there are holes
    return (rounds * calls + holes) * (writers == 1 ? s.call_s : s.contended_call_s);
}

}  // namespace

Load load_of(Job const& job)
{
    auto const& all = job.pattern;
    auto const nodes = static_cast<std::uint64_t>(job.nodes);
    auto const share = [&](std::uint64_t value) { return (value + nodes - 1) / nodes; };
    return {share(all.bytes), share(all.pieces), all.most_bytes, all.most_pieces, share(all.ranks_with_data)};
}

bool populates(Job const& job, int writers)
{
    return job.storage.reserve == machine::Reserve::populate && writers >= 3 && job.pattern.dense();
}

bool sparse(Job const& job)
{
    auto const range = as_double(static_cast<std::uint64_t>(job.pattern.end - job.pattern.begin));
    return as_double(job.pattern.spans) * pattern::Summary::span_bytes < range;
}

double aggregated_write_seconds(Job const& job, int writers)
{
    auto const& s = job.storage;
    auto const load = load_of(job);
    auto const bytes = as_double(load.bytes);
    bool const dense = job.pattern.dense();
    // A writer does nothing else while it copies its own data.
    auto const drain_s =
        bytes / drain_bandwidth(job, writers) + drain_calls(job, writers) + as_double(load.most_bytes) / copy_alone_bw;
    // As many ranks copy at the same time as have data in the open rounds.
    auto const together = ranks_in_a_round(job);
    auto const fill_s = bytes / (copy_bw * std::min<double>(together * writers, std::max(1, job.cores)));
    auto const start_s = start_write_s + crowded_start_s * (crowding(job, load) - 1);
    auto const cores_s = (drain_s + bytes / copy_alone_bw) / std::max(1, job.cores);  // for all their work
    auto const alone_s = together < 2 && writers == 1 ? bytes / copy_alone_bw : fill_s;
    if (dense || together >= 2) return start_s + std::max({drain_s, alone_s, cores_s, copy_seconds(job, load)});
    // If rounds that one rank fills lie far apart, they take turns in one buffer. Then filling and draining do not
    // overlap, except with those of other writers.
    auto const one_by_one = (fill_s * writers + bytes / s.write_bw) / writers;
    auto const rounds = std::ceil(as_double(job.pattern.spans) / writers);
    return start_write_s + rounds * hand_over_s + std::max({drain_s, one_by_one, copy_seconds(job, load)});
}

double aggregated_read_seconds(Job const& job, int readers)
{
    auto const streams = std::min({readers, job.storage.read_streams, job.cores});
    auto const bw = std::min(most_shared_read_bw, job.storage.read_bw * streams);
    return start_read_s + read_volume(job, readers) / bw + copy_seconds(job, load_of(job));
}

double direct_write_seconds(Job const& job)
{
    auto const load = load_of(job);
    auto const& s = job.storage;
    bool const small_pages = s.reserve == machine::Reserve::allocate && job.pattern.granule() < large_unit;
    auto const alone_bw = small_pages ? std::min(s.write_bw, s.contended_write_bw) : s.write_bw;
    return as_double(load.pieces) * contended(job, load.ranks, s.call_s, s.contended_call_s) +
           as_double(load.bytes) / contended(job, load.ranks, alone_bw, s.contended_write_bw);
}

double direct_read_seconds(Job const& job)
{
    auto const load = load_of(job);
    return (as_double(load.most_pieces) * job.storage.call_s + as_double(load.most_bytes) / job.storage.read_bw) *
           crowding(job, load);
}

}  // namespace tapioca::plan
