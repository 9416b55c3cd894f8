#include "plan/predict.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace tapioca::plan {

namespace {

// Costs inside a node, measured on a 16-core machine with 16 ranks (docs/design.md).
constexpr double copy_bw = 4e9;   // one rank into or out of a shared buffer
constexpr double piece_s = 8e-9;  // one small piece of such a copy

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

Load load_of(Job const& job)
{
    auto const& all = job.pattern;
    auto const nodes = static_cast<std::uint64_t>(job.nodes);
    auto const share = [&](std::uint64_t value) { return (value + nodes - 1) / nodes; };
    return {share(all.bytes), share(all.pieces), all.most_bytes, all.most_pieces, share(all.ranks_with_data)};
}

bool populates(Job const& job, int writers)
{
    return job.storage.reserve == machine::Reserve::populate && writers >= 3;
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
    auto const share = std::min(1.0, static_cast<double>(writers) / s.write_streams);
    auto const bw = populates(job, writers) ? s.parallel_write_bw * share
                    : writers == 1          ? s.write_bw
                                            : s.contended_write_bw;
    return start_write_s + std::max(as_double(load.bytes) / bw, copy_seconds(job, load));
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
    bool const alone = load.ranks <= 1;
    auto const& s = job.storage;
    return as_double(load.pieces) * (alone ? s.call_s : s.contended_call_s) +
           as_double(load.bytes) / (alone ? s.write_bw : s.contended_write_bw);
}

double direct_read_seconds(Job const& job)
{
    auto const load = load_of(job);
    return (as_double(load.most_pieces) * job.storage.call_s + as_double(load.most_bytes) / job.storage.read_bw) *
           crowding(job, load);
}

}  // namespace tapioca::plan
