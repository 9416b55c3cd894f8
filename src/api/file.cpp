// File: opening, declaring, closing. Rank 0 does what must be done once and tells the others.
#include <algorithm>
#include <cstring>
#include <functional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "api/state.hpp"
#include "machine/stripes.hpp"
#include "pattern/scale.hpp"

namespace tapioca {

namespace api {

namespace {

target::Access access_of(Mode mode, bool first)
{
    if (mode == Mode::read) return target::Access::read;
    return mode == Mode::create && first ? target::Access::create : target::Access::update;
}

core::Result<std::unique_ptr<target::Target>> open_target(FileState const& file, bool first)
{
    auto target = target::open_file(file.path, access_of(file.mode, first));
    if (target && file.settings.options.devnull.value_or(false)) return target::discard_writes(std::move(*target));
    return target;
}

engine::Wish wish_of(settings::Settings const& settings)
{
    return {settings.options.platform.value_or(""), settings.options.aggrtier.value_or("")};
}

/// On rank 0: the settings, with those of the platform file.
core::Status settle(FileState& file, core::Result<settings::Settings> settings)
{
    if (!settings) return tl::unexpected(settings.error());
    file.settings = std::move(*settings);
    auto const ranks_per_node = file.pool->team().ranks_per_node();
    if (file.settings.options.ranks_per_node.value_or(0) != ranks_per_node)
        return core::fail(Errc::setting, fmt::format("ranks_per_node was {} when the communicator's first file was "
                                                     "opened, and stays",
                                                     ranks_per_node));
    if (file.settings.options.striping_unit.value_or(0) % 512 != 0)
        return core::fail(Errc::setting, fmt::format("striping_unit={}: expected a multiple of 512 bytes",
                                                     *file.settings.options.striping_unit));
    auto const& platform = file.settings.options.platform;
    if (!platform) return {};
    file.around = file.pool->surroundings(wish_of(file.settings));
    settings::Pairs defaults;
    if (file.around) {
        defaults = file.around->machine->settings;
    } else {
        auto const text = machine::read_platform(*platform);
        if (!text) return tl::unexpected(text.error());
        auto const machine = machine::parse_platform(text->text, text->path);
        if (!machine) return tl::unexpected(machine.error());
        defaults = machine->settings;
    }
    for (auto const& [name, value] : defaults)
        if (name == "ranks_per_node" || name == "platform")
            return core::fail(Errc::setting, fmt::format("{}: [settings] {}: belongs to the job, not to the machine",
                                                         *platform, name));
    return settings::add_defaults(file.settings, defaults, "platform file");
}

/// On rank 0: file and file system.
core::Status open_first(FileState& file)
{
    auto const& options = file.settings.options;
    machine::Stripes const wanted{static_cast<std::int64_t>(options.striping_unit.value_or(0)),
                                  options.striping_factor.value_or(0)};
    bool const wants_stripes = options.striping_unit || options.striping_factor;
    std::string note;
    if (wants_stripes && file.mode == Mode::create) note = machine::create_striped(file.path, wanted);
    auto plain = target::open_file(file.path, access_of(file.mode, true));
    if (!plain) return tl::unexpected(plain.error());
    auto storage = machine::storage_of(target::descriptor(**plain));
    if (!storage) return tl::unexpected(storage.error());
    file.storage = *storage;
    if (wants_stripes && file.storage.stripe_bytes == 0 && machine::has_stripes(file.storage.name))
        machine::enter(file.storage, wanted);  // it does not tell its own: believe the user
    if (!note.empty()) file.storage.note = "striping_unit and striping_factor: " + note;
    bool const discard = options.devnull.value_or(false);
    file.set_target(discard ? target::discard_writes(std::move(*plain)) : std::move(*plain));
    return {};
}

/// What rank 0 found. The storage's note and, as text, the settings or a failure follow.
struct Opening {
    std::int64_t block_bytes;
    std::int64_t stripe_bytes;
    std::int32_t stripe_count;
    std::int32_t note_bytes;
    std::int32_t remote;
    std::int32_t failed;
    char storage[16];
};

std::string pack(FileState const& file, core::Status const& status)
{
    auto const& storage = file.storage;
    Opening opening{storage.block_bytes,
                    storage.stripe_bytes,
                    storage.stripe_count,
                    static_cast<std::int32_t>(storage.note.size()),
                    storage.remote,
                    !status,
                    {}};
    storage.name.copy(opening.storage, sizeof opening.storage - 1);
    std::string message(reinterpret_cast<char const*>(&opening), sizeof opening);
    message += storage.note;
    if (status) return message + settings::pack(file.settings);
    auto const failure = core::pack(status.error());
    return message.append(reinterpret_cast<char const*>(failure.data()), failure.size());
}

core::Status unpack(FileState& file, std::string const& message)
{
    Opening opening;
    std::memcpy(&opening, message.data(), sizeof opening);
    auto const note_bytes = static_cast<std::size_t>(opening.note_bytes);
    auto const note = std::string_view(message).substr(sizeof opening, note_bytes);
    auto const rest = std::string_view(message).substr(sizeof opening + note_bytes);
    if (opening.failed) {
        auto failure = core::unpack(std::as_bytes(std::span(rest)));
        failure.rank = 0;
        return tl::unexpected(std::move(failure));
    }
    file.settings = settings::unpack(rest);
    file.storage = machine::storage_profile(opening.storage);
    file.storage.block_bytes = opening.block_bytes;
    file.storage.stripe_bytes = opening.stripe_bytes;
    file.storage.stripe_count = opening.stripe_count;
    file.storage.remote = opening.remote != 0;
    file.storage.note = note;
    return {};
}

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
    auto const partitions = cuts.size() - 1;
    pattern::Scale scale(cuts, unit);  // shifting a step moves the cuts by less than that
    scale.add(variables);
    std::vector<std::uint64_t> counts;
    auto const own = scale.weights();
    for (auto const& weight : own) counts.push_back(weight.bytes);
    for (auto const& weight : own) counts.push_back(weight.near);
    counts = team.sum_on_node(std::move(counts));
    std::vector<std::uint64_t> mine;  // partition and bytes, of those that the node may feed
    for (std::size_t p = 0; p < partitions; ++p)
        if (counts[partitions + p] > 0) mine.insert(mine.end(), {p, counts[p]});
    std::vector<plan::Weight> weights;
    auto const nodes = team.gather_nodes(mine);
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (std::size_t i = 0; i < nodes[node].size(); i += 2)
            weights.push_back({static_cast<int>(node), static_cast<std::size_t>(nodes[node][i]), nodes[node][i + 1]});
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

target::Target* FileState::target()
{
    if (!target_) {
        target_status_ = {};  // what failed before may do now
        auto opened = open_target(*this, false);
        if (opened)
            target_ = std::move(*opened);
        else
            target_status_ = tl::unexpected(opened.error());
    }
    return target_.get();
}

core::Status FileState::close_target()
{
    auto status = target_ ? target_->close() : core::Status();
    target_.reset();
    return status;
}

void FileState::raise(std::string const& call, core::Failure const& failure) const
{
    auto const who = failure.rank >= 0 ? fmt::format("rank {}: ", failure.rank) : std::string();
    throw Error(failure.code, failure.rank, failure.sys_errno, path,
                fmt::format("tapioca: {}: {}{}: {}", call, who, path, failure.text));
}

void FileState::raise_if(std::string const& call, core::Status const& agreed) const
{
    if (!agreed) raise(call, agreed.error());
}

void FileState::require_open(std::string const& call) const
{
    if (!open) raise(call, {Errc::invalid_state, 0, -1, "the file is closed"});
    if (!comm::mpi_is_active()) raise(call, {Errc::invalid_state, 0, -1, "MPI has been finalised"});
}

void FileState::require_same(std::string const& call, std::string const& what, std::string const& value) const
{
    if (!check()) return;
    auto const& team = pool->team();
    auto const rank = team.first_different(std::hash<std::string>{}(value));
    if (rank < 0) return;
    core::Status mine;
    if (team.rank() == rank) mine = core::fail(Errc::mismatch, fmt::format("{} is {}, unlike rank 0's", what, value));
    raise_if(call, comm::agree(team.all(), mine));
}

}  // namespace api

File::File(std::shared_ptr<api::FileState> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

File File::open(MPI_Comm comm, std::string const& path, Mode mode, Options const& options, MPI_Info info)
{
    auto state = std::make_shared<api::FileState>();
    state->path = path;
    state->mode = mode;
    if (!comm::mpi_is_active())
        state->raise("open", {Errc::invalid_state, 0, -1, "MPI is not initialised, or already finalised"});
    if (comm == MPI_COMM_NULL)
        state->raise("open", {Errc::invalid_argument, 0, -1, "the communicator is MPI_COMM_NULL"});

    core::Result<settings::Settings> settings;
    if (comm::rank_in(comm) == 0)
        settings = settings::resolve(options, comm::pairs_of(info), settings::read_environment());
    auto pool = engine::Pool::of(comm, settings ? settings->options.ranks_per_node.value_or(0) : 0);
    if (!pool) state->raise("open", pool.error());
    state->pool = *pool;
    auto const& team = state->pool->team();

    // The settings and, unless the machine must be looked at first, all that rank 0 finds: one message.
    core::Status status;
    auto const known = [&] { return state->pool->surroundings(api::wish_of(state->settings)); };
    auto const tell = [&] {
        auto const told = state->pool->broadcast(team.rank() == 0 ? api::pack(*state, status) : std::string());
        if (!told) state->raise("open", told.error());
        state->raise_if("open", api::unpack(*state, *told));
    };
    if (team.rank() == 0) {
        status = api::settle(*state, std::move(settings));
        if (status && known()) status = api::open_first(*state);
    }
    tell();
    state->around = known();
    if (!state->around) {
        auto found = state->pool->look_around(api::wish_of(state->settings));
        if (!found) state->raise("open", found.error());
        state->around = *found;
        if (team.rank() == 0) status = api::open_first(*state);
        tell();
    }
    if (auto const& described = state->around->machine->storage) machine::adopt(state->storage, *described);
    state->open = true;
    state->pool->patience().timeout_s = state->settings.options.timeout.value_or(0);

    if (state->check()) state->path = state->pool->broadcast(path).value_or(path);  // for the same message on all ranks
    state->require_same("open", "the path", path);
    state->require_same("open", "the mode", api::name(mode));
    state->require_same("open", "the list of options given in code",
                        fmt::format("[{}]", fmt::join(api::describe({options, {}}), ", ")));
    state->pool->opened();
    return File(std::move(state));
}

Step File::declare(Pattern const& pattern)
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: declare: the file was moved from");
    auto& file = *state_;
    file.require_open("declare");
    engine::Stopwatch const watch(file.account.planning);
    auto const& team = file.pool->team();
    auto const given_before = team.traffic_bytes();
    auto const& variables = pattern.all();

    core::Status local;
    for (auto const& variable : variables) core::keep_first(local, variable->status());
    auto const total = file.pool->sum(pattern::summarise(variables), local);
    if (!total) file.raise("declare", total.error());
    auto const& around = *file.around;
    plan::Job job{*total,         file.storage,       file.settings.options,
                  team.size(),    file.pool->cores(), static_cast<int>(team.nodes().size()),
                  around.machine, around.where,       around.free_bytes};

    if (job.pattern.fewest_variables != job.pattern.most_variables)
        file.raise("declare", {Errc::mismatch, 0, team.first_different(variables.size()),
                               fmt::format("ranks declare from {} to {} variables, and must declare the same number",
                                           job.pattern.fewest_variables, job.pattern.most_variables)});
    if (file.check() && file.mode != Mode::read)
        file.raise_if("declare", api::find_overlap(team, variables, job.pattern));

    std::vector<std::uint64_t> histogram;
    if (plan::wants_histogram(job) && file.mode != Mode::read)
        histogram = team.sum(pattern::histogram(variables, job.pattern.begin, job.pattern.end, plan::histogram_bins));
    auto plan = plan::make(job, histogram);
    if (!plan) file.raise("declare", plan.error());
    plan::Census const census{[&](auto const& cuts) { return api::weigh(team, variables, cuts, plan->write.unit); },
                              [&](auto const& election) { return api::poll(team, election); }};
    plan::connect(*plan, team.nodes(), census);
    file.raise_if("declare", file.mode == Mode::read ? plan->read.feasible : plan->write.feasible);
    file.require_same("declare", "the plan", plan::explain(*plan, {}));
    file.account.planning_bytes += team.traffic_bytes() - given_before;
    if (job.nodes == 1) file.account.planning_bytes += sizeof job.pattern;  // through shared memory
    file.account.bookkeeping_bytes = std::max(file.account.bookkeeping_bytes, pattern.bookkeeping_bytes());
    if (file.settings.options.report) file.account.plans.push_back(api::to_json(*plan, file.settings));
    return Step(std::make_unique<api::StepState>(state_, variables, std::move(*plan)));
}

void File::sync()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: sync: the file was moved from");
    state_->require_open("sync");
    // One fsync reaches what every process of this node wrote.
    core::Status local;
    if (state_->pool->team().node_rank() == 0) {
        auto* const target = state_->target();
        local = target ? target->sync() : state_->target_status();
        if (local && state_->mode == Mode::create) local = target::sync_directory_of(state_->path);
    }
    state_->raise_if("sync", state_->pool->agree(local));
}

std::uint64_t File::size()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: size: the file was moved from");
    state_->require_open("size");
    core::Status local;
    std::vector<std::uint64_t> size{0};
    if (state_->pool->team().rank() == 0) {
        auto* const target = state_->target();
        auto result = target ? target->size() : tl::unexpected(state_->target_status().error());
        if (result)
            size[0] = *result;
        else
            local = tl::unexpected(result.error());
    }
    state_->raise_if("size", state_->pool->agree(local));
    return state_->pool->team().sum(size)[0];
}

void File::close()
{
    if (!state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: close: the file was moved from");
    auto& file = *state_;
    file.require_open("close");
    if (file.pool->in_flight)
        file.raise("close",
                   {Errc::invalid_state, 0, -1, "a step is under way on this communicator: wait() for it first"});
    auto const local = file.close_target();
    file.open = false;
    file.pool->closed();
    auto const agreed = file.pool->agree(local);
    // The ranks no longer make the same collective calls after an abandoned step.
    bool const apart = file.pool->several_nodes() && file.pool->abandoned();
    if (file.settings.options.report && !apart) api::write_report(file);
    file.raise_if("close", agreed);
}

bool File::is_open() const noexcept
{
    return state_ && state_->open;
}

namespace hacc {

Pattern pattern(MPI_Comm comm, Layout layout, std::int64_t mine, std::int64_t file_offset)
{
    auto const [before, total] = comm::prefix_and_total(comm, mine);
    return pattern(layout, mine, before, total, file_offset);
}

}  // namespace hacc
}  // namespace tapioca
