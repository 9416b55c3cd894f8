// File: declaring, closing and what belongs to a file as a whole.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>

#include <fmt/core.h>

#include "api/state.hpp"
#include "core/output.hpp"
#include "pattern/scale.hpp"

namespace tapioca {

namespace api {

namespace {

void merge_bids(void* in, void* in_out, int* count, MPI_Datatype* type)
{
    int bytes = 0;  // of one partition's bids
    MPI_Type_size(*type, &bytes);
    auto const each = static_cast<std::size_t>(bytes) / sizeof(plan::Bid);
    for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
        plan::merge({static_cast<plan::Bid*>(in_out) + i * each, each},
                    {static_cast<plan::Bid const*>(in) + i * each, each});
}

/// How many bytes each node has in each partition. Collective.
std::vector<plan::Weight> weigh(comm::Team const& team, pattern::Variables const& variables,
                                std::vector<std::int64_t> const& cuts, std::int64_t unit)
{
    pattern::Scale scale(cuts, unit);  // shifting a step moves the cuts by less than that
    scale.add(variables);
    auto shares = scale.weights();
    std::vector<std::uint64_t> counts;
    for (auto const& share : shares) counts.insert(counts.end(), {share.bytes, share.near_bytes});
    counts = team.sum_on_node(std::move(counts));
    for (std::size_t p = 0; p < shares.size(); ++p) shares[p] = {counts[2 * p], counts[2 * p + 1]};
    std::vector<std::uint64_t> mine;
    for (auto const& weight : plan::weights_of(team.my_node(), shares, team.nodes().size()))
        mine.insert(mine.end(), {weight.begin, weight.end, weight.bytes, weight.most_bytes});
    std::vector<plan::Weight> weights;
    auto const nodes = team.gather_nodes(mine);
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (std::size_t i = 0; i < nodes[node].size(); i += 4)
            weights.push_back(
                {static_cast<int>(node), nodes[node][i], nodes[node][i + 1], nodes[node][i + 2], nodes[node][i + 3]});
    return weights;
}

/// The best bids of all nodes: each node's first rank bids for it. Collective.
plan::Bids poll(comm::Team const& team, plan::Election const& election)
{
    if (team.nodes().size() == 1) return plan::bids_of(election, 0);
    auto bids = team.node_rank() == 0 ? plan::bids_of(election, team.my_node()) : plan::no_bids(election);
    team.reduce_nodes(bids.data(), plan::bids_kept(election) * sizeof bids[0],
                      static_cast<int>(election.partitions.size()), merge_bids);
    return bids;
}

}  // namespace

FileState::~FileState()
{
    if (!open || std::uncaught_exceptions() > 0) return;
    if (!forgotten_)
        std::fprintf(stderr, "tapioca: %s: %s, nor was close()\n", path.c_str(), forgotten_.error().text.c_str());
    else if (staging && pool->team().rank() == 0)
        std::fprintf(stderr, "tapioca: %s\n", never_closed(path).c_str());
}

std::string never_closed(std::string const& path)
{
    return fmt::format(
        "{0}: was never closed: what was written since its last flush is in its log, and `tapioca log "
        "recover {0}` brings it into the file",
        path);
}

core::Status FileState::forgotten() const
{
    auto status = forgotten_;
    for (auto const* const step : steps) core::keep_first(status, step->forgotten());
    return status;
}

namespace {

[[noreturn]] void throw_error(std::string const& path, std::string const& call, core::Failure const& failure)
{
    auto const who = failure.rank >= 0 ? fmt::format("rank {}: ", failure.rank) : std::string();
    throw Error(failure.code, failure.rank, failure.sys_errno, path,
                core::printable(fmt::format("tapioca: {}: {}{}: {}", call, who, path, failure.text)));
}

}  // namespace

void FileState::raise(std::string const& call, core::Failure const& failure) const
{
    throw_error(path, call, failure);
}

void FileState::lose(std::string const& call)
{
    pool->lose();
    raise(call, pool->lost().error());
}

void FileState::raise_if(std::string const& call, core::Status const& agreed) const
{
    if (!agreed) raise(call, agreed.error());
}

void FileState::require_own(char const* call) const
{
    if (forked())
        raise(call, {Errc::invalid_state, 0, -1, "this process was forked from the one that opened the file"});
}

void FileState::require_open(char const* call) const
{
    require_own(call);
    if (!open) raise(call, {Errc::invalid_state, 0, -1, "the file is closed"});
    if (!comm::mpi_is_active()) raise(call, {Errc::invalid_state, 0, -1, "MPI has been finalised"});
    watch(call);
}

void FileState::watch(char const* call) const
{
    pool->watch(settings.options.timeout.value_or(settings::default_timeout), call, path);
}

void FileState::require_idle(std::string const& call) const
{
    if (pool->in_flight)
        raise(call, {Errc::invalid_state, 0, -1, "a step is under way on this communicator: wait() for it first"});
}

void FileState::require_same(std::string const& call, std::string const& what, std::string const& value) const
{
    if (!check()) return;
    auto const& team = pool->team();
    auto const rank = team.first_different(std::hash<std::string>{}(value));
    if (rank < 0) return;
    core::Status mine;
    if (team.rank() == rank) mine = core::fail(Errc::mismatch, fmt::format("{} is {}, unlike rank 0's", what, value));
    auto const agreed = comm::agree(team.all(), mine);
    auto const named = comm::broadcast(team.all(), path);  // ranks may be about to use different files
    if (!agreed) throw_error(named, call, agreed.error());
}

std::unique_ptr<StepState> declare(std::shared_ptr<FileState> const& shared, pattern::Variables const& variables)
{
    auto& file = *shared;
    file.require_open("declare");
    if (file.staging) file.staging->advance();
    engine::Stopwatch const watch(file.account.planning);
    auto const& team = file.pool->team();
    auto const given_before = team.traffic_bytes();

    core::Status local;
    std::uint64_t bookkeeping = 0;
    for (auto const& variable : variables) {
        core::keep_first(local, variable->status());
        bookkeeping += variable->bookkeeping_bytes();
    }
    auto const total = file.pool->sum(pattern::summarise(variables), local);
    if (!total) file.raise("declare", total.error());
    auto const& around = *file.around;
    plan::Job job{*total,
                  file.storage,
                  file.settings.options,
                  team.size(),
                  file.pool->cores(),
                  static_cast<int>(team.nodes().size()),
                  around.machine,
                  around.where,
                  around.free_bytes,
                  file.pool->fixed_bytes()};

    if (job.pattern.fewest_variables != job.pattern.most_variables)
        file.raise("declare", {Errc::mismatch, 0, team.first_different(variables.size()),
                               fmt::format("ranks declare from {} to {} variables, and must declare the same number",
                                           job.pattern.fewest_variables, job.pattern.most_variables)});
    if (file.check() && file.mode != Mode::read) file.raise_if("declare", find_overlap(team, variables, job.pattern));

    std::vector<std::uint64_t> histogram;
    if (plan::wants_histogram(job) && file.mode != Mode::read)
        histogram = team.sum(pattern::histogram(variables, job.pattern.begin, job.pattern.end, plan::histogram_bins));
    auto plan = plan::make(job, histogram);
    if (!plan) file.raise("declare", plan.error());
    plan::Census const census{[&](auto const& cuts) { return weigh(team, variables, cuts, plan->write.unit); },
                              [&](auto const& election) { return poll(team, election); }};
    plan::connect(*plan, team.nodes(), census);
    file.raise_if("declare", file.mode == Mode::read ? plan->read.feasible : plan->write.feasible);
    file.require_same("declare", "the plan", plan::explain(*plan, {}));
    file.account.planning_bytes += team.traffic_bytes() - given_before;
    if (job.nodes == 1) file.account.planning_bytes += sizeof job.pattern;  // through shared memory
    file.account.bookkeeping_bytes = std::max(file.account.bookkeeping_bytes, bookkeeping);
    if (file.settings.options.report) file.account.plans.push_back(to_json(*plan, file.settings));
    auto step = std::make_unique<StepState>(shared, variables, std::move(*plan));
    if (job.nodes == 1) file.raise_if("declare", file.pool->agree({}));  // all have their plan, or nobody
    return step;
}

}  // namespace api

namespace {

void flush_file(api::FileState& file)
{
    file.require_open("flush");
    file.require_idle("flush");
    if (file.staging) file.raise_if("flush", file.staging->flush(false));
}

void sync_file(api::FileState& file)
{
    file.require_open("sync");
    if (file.staging) {
        file.require_idle("sync");
        file.raise_if("sync", file.staging->flush(true));
    }
    // One fsync reaches what every process of this node wrote.
    core::Status local;
    if (file.pool->team().node_rank() == 0) {
        auto* const target = file.target();
        local = target ? target->sync() : file.target_status();
        if (local && file.mode == Mode::create) local = target::sync_directory_of(file.place);
    }
    file.raise_if("sync", file.pool->agree(local));
}

std::uint64_t size_file(api::FileState& file)
{
    file.require_open("size");
    core::Status local;
    std::vector<std::uint64_t> size{0};
    if (file.pool->team().rank() == 0) {
        auto* const target = file.target();
        auto result = target ? target->size() : tl::unexpected(file.target_status().error());
        if (result)
            size[0] = *result;
        else
            local = tl::unexpected(result.error());
    }
    file.raise_if("size", file.pool->agree(local));
    auto const in_file = file.pool->team().sum(size)[0];
    if (!file.staging) return in_file;
    file.staging->advance();
    return std::max(in_file, static_cast<std::uint64_t>(file.staging->end()));
}

void close_file(api::FileState& file)
{
    file.require_open("close");
    file.require_idle("close");
    auto staged = file.staging ? file.staging->close() : core::Status();
    if (file.staging && file.settings.options.report) file.account.more.emplace_back("stage", file.staging->account());
    if (auto* const target = file.target_if_open()) target->tell_changes(nullptr);
    file.staging.reset();
    auto local = file.close_target();
    core::keep_first(local, file.forgotten());
    file.open = false;
    file.pool->closed();
    auto const agreed = file.pool->agree(local);
    // The ranks no longer make the same collective calls after an abandoned step.
    bool const apart = file.pool->several_nodes() && file.pool->abandoned();
    if (file.settings.options.report && !apart) api::write_report(file);
    file.raise_if("close", staged);
    file.raise_if("close", agreed);
}

}  // namespace

File::File(std::shared_ptr<api::FileState> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&& other) noexcept
{
    File old(std::move(other));
    std::swap(state_, old.state_);
    return *this;
}
File::~File()
{
    if (state_ && state_->forked()) (void)new (std::nothrow) std::shared_ptr(std::move(state_));  // the parent's
}

Step File::declare(Pattern const& pattern)
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: declare: the file was moved from");
    return Step(api::collective(*state_, "declare", [&] { return api::declare(state_, pattern.all()); }));
}

void File::flush()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: flush: the file was moved from");
    api::collective(*state_, "flush", [&] { flush_file(*state_); });
}

void File::sync()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: sync: the file was moved from");
    api::collective(*state_, "sync", [&] { sync_file(*state_); });
}

std::uint64_t File::size()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: size: the file was moved from");
    return api::collective(*state_, "size", [&] { return size_file(*state_); });
}

void File::close()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: close: the file was moved from");
    api::collective(*state_, "close", [&] { close_file(*state_); });
}

bool File::is_open() const noexcept
{
    return state_ && state_->open;
}

namespace hacc {

Pattern pattern(MPI_Comm comm, Layout layout, std::int64_t mine, std::int64_t file_offset)
{
    if (auto const* const why = comm::unfit(comm))
        throw Error(Errc::invalid_argument, -1, 0, "", fmt::format("tapioca: hacc::pattern: {}", why));
    auto const watchdog = api::watch_unopened(comm, "hacc::pattern", {}, {}, MPI_INFO_NULL);
    auto const [before, total] = comm::prefix_and_total(comm, mine);
    return pattern(layout, mine, before, total, file_offset);
}

}  // namespace hacc
}  // namespace tapioca
