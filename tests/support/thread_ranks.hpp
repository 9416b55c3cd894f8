// The ranks of a node as threads of one process, on heap memory: the shared-memory protocol without MPI, all of which
// ThreadSanitizer sees.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "engine/run.hpp"
#include "machine/cores.hpp"
#include "support/machines.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {

/// A step of the whole node, made before the threads start.
struct Scene {
    Job job;
    std::vector<Pattern> patterns;
    plan::Plan plan;
    std::int64_t base = 0;
    bool writing = true;
    bool background = false;
    int spoiled_rank = -1;
    std::vector<std::vector<Bytes>> data;  ///< [rank][variable]: to write, or what was read

    [[nodiscard]] plan::Route const& route() const { return writing ? plan.write : plan.read; }
};

/// Chooses the places of a plan on several nodes.
inline void connect(Scene& scene, plan::Nodes const& nodes)
{
    auto const weigh = [&](std::vector<std::int64_t> const& cuts) {
        std::vector<plan::Weight> weights;
        for (std::size_t node = 0; node < nodes.size(); ++node) {
            pattern::Scale scale(cuts, scene.plan.write.unit);
            for (int const rank : nodes[node])
                scale.add(tapioca::pattern::variables_of(scene.patterns[static_cast<std::size_t>(rank)]));
            auto const here = plan::weights_of(static_cast<int>(node), scale.weights(), nodes.size());
            weights.insert(weights.end(), here.begin(), here.end());
        }
        return weights;
    };
    plan::connect(scene.plan, nodes, {weigh, plan::all_bids});
}

/// `nodes`: the ranks of each node; empty for one node.
inline Scene make_scene(Job job, Options const& options, std::int64_t base, std::int64_t block_bytes,
                        int stripe_blocks = 0, plan::Nodes const& nodes = {})
{
    Scene scene;
    plan::Job planned;
    for (auto const& variables : job) {
        scene.patterns.push_back(pattern_of(variables));
        planned.pattern.add(pattern::summarise(tapioca::pattern::variables_of(scene.patterns.back())));
    }
    std::vector<std::uint64_t> histogram(plan::histogram_bins, 0);
    if (planned.pattern.bytes > 0)
        for (auto const& pattern : scene.patterns) {
            auto const mine = pattern::histogram(tapioca::pattern::variables_of(pattern), planned.pattern.begin,
                                                 planned.pattern.end, plan::histogram_bins);
            for (std::size_t i = 0; i < mine.size(); ++i) histogram[i] += mine[i];
        }
    planned.storage = machine::storage_profile("tmpfs");
    planned.storage.block_bytes = block_bytes;
    planned.storage.stripe_bytes = stripe_blocks * block_bytes;
    planned.storage.stripe_count = stripe_blocks > 0 ? 3 : 0;
    planned.options = options;
    planned.ranks = static_cast<int>(job.size());
    planned.cores = 2;
    if (!nodes.empty()) {
        planned.nodes = static_cast<int>(nodes.size());
        planned.machine = flat_machine(planned.nodes);
        planned.free_bytes = {{std::uint64_t{1} << 36}};
    }
    scene.plan = *plan::make(planned, histogram);
    if (!nodes.empty()) connect(scene, nodes);
    scene.base = base;
    for (auto const& variables : job) {
        scene.data.emplace_back();
        for (auto const& variable : variables)
            scene.data.back().emplace_back(static_cast<std::size_t>(variable.bytes()));
    }
    scene.job = std::move(job);
    return scene;
}

/// Zeroed memory that all threads see.
class Memory {
public:
    explicit Memory(std::size_t bytes)
    {
        auto const rounded = (bytes + 4095) / 4096 * 4096 + 4096;
        data_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, rounded)));
        std::memset(data_.get(), 0, rounded);
    }
    [[nodiscard]] std::byte* data() const { return data_.get(); }

private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> data_;
};

/// What the ranks of a node share: counters for the largest possible number of partitions, and buffers large enough for
/// all `scenes`.
struct NodeMemory {
    NodeMemory(int ranks_here, int partitions, std::vector<Scene> const& scenes)
        : ranks(ranks_here),
          lanes{static_cast<std::size_t>(partitions), engine::most_buffers},
          control(engine::Exchange::bytes(ranks_here)),
          counters(engine::Exchange::lane_bytes(ranks_here, lanes)),
          buffers(most(scenes, [](engine::BufferLayout const& buffer_layout) { return buffer_layout.bytes(); })),
          maps(most(scenes, [](engine::BufferLayout const& buffer_layout) { return buffer_layout.map_bytes(); }))
    {
    }

    int ranks;
    engine::Exchange::Lanes lanes;
    Memory control;
    Memory counters;
    Memory buffers;
    Memory maps;

private:
    template <class Bytes>
    static std::uint64_t most(std::vector<Scene> const& scenes, Bytes bytes)
    {
        std::uint64_t most = 0;  // the same on every node
        for (auto const& scene : scenes)
            for (auto const* const route : {&scene.plan.write, &scene.plan.read})
                most = std::max(most, bytes(engine::BufferLayout(*route, 0)));
        return most;
    }
};

/// A target that is owned elsewhere.
class Borrowed final : public target::Target {
public:
    explicit Borrowed(target::Target& lender) : lender_(lender) {}
    core::Status write(std::int64_t offset, std::span<iovec> vectors) override
    {
        return lender_.write(offset, vectors);
    }
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override
    {
        return lender_.read(offset, vectors);
    }
    core::Status sync() override { return lender_.sync(); }
    core::Result<std::uint64_t> size() override { return lender_.size(); }
    core::Status close() override { return {}; }

private:
    target::Target& lender_;
};

/// One rank: its exchange, its I/O thread and its tickets.
class ThreadRank {
public:
    /// Rank `here` of node `number`, which is rank `rank` of all.
    ThreadRank(NodeMemory const& memory, int here, int rank, int number = 0)
        : exchange(memory.control.data(), memory.ranks, here),
          worker(machine::allowed_cores(), [] { std::abort(); }),
          rank_(rank),
          number_(number)
    {
        wait_policy.crowded = true;
        exchange.use_lanes(memory.counters.data(), memory.lanes);
        tickets.lanes.resize(memory.lanes.count, 0);
        node.exchange = &exchange;
        node.buffers = memory.buffers.data();
        node.maps = memory.maps.data();
        node.worker = &worker;
        node.wait_policy = &wait_policy;
        node.rank = rank;
        launched = worker.launch();
    }

    std::unique_ptr<engine::Run> start(Scene& scene, target::Target* target, core::Status const& target_status = {})
    {
        auto const& route = scene.route();
        buffer_layout_ = std::make_unique<engine::BufferLayout>(route, number_);
        auto const& variables = tapioca::pattern::variables_of(scene.patterns[static_cast<std::size_t>(rank_)]);
        auto context = node;
        context.route = &route;
        context.buffer_layout = buffer_layout_.get();
        context.writing = scene.writing;
        context.every_byte = scene.plan.job.pattern.dense();
        context.base = scene.base;
        context.spoiled = scene.spoiled_rank == rank_;
        context.threaded = scene.background;
        context.variables = variables.size();
        context.tickets = tickets;
        context.schedule = plan::schedule(route, scene.plan.job.storage.block_bytes, scene.base);
        if (!context.spoiled)
            for (std::size_t v = 0; v < variables.size(); ++v)
                for (auto const& layout : variables[v]->layouts())
                    context.variable_buffers.push_back(
                        {&layout, scene.data[static_cast<std::size_t>(rank_)][v].data(), v});
        bool const aggregator = std::find(route.ranks.begin(), route.ranks.end(), rank_) != route.ranks.end();
        if (route.way == plan::Way::direct || aggregator) {
            context.target = target;
            context.target_status = target_status;
        }
        if (target) lazy_target_.keep(std::make_unique<Borrowed>(*target));
        context.lazy_target = &lazy_target_;
        tickets.pass(context.schedule, scene.writing || route.networked());
        return engine::start(std::move(context));
    }

    /// Runs a whole step, as the library does.
    core::Status finish(Scene& scene, target::Target* target, core::Status const& target_status = {},
                        std::vector<std::uint64_t>* received = nullptr)
    {
        core::Status status;
        if (scene.spoiled_rank == rank_) status = core::fail(Errc::invalid_argument, "spoiled");
        if (begin) begin(scene.spoiled_rank == rank_);
        auto const run = start(scene, target, target_status);
        engine::wait_until(wait_policy, "the run", [&] { return run->advance(); });
        core::keep_first(status, run->settle());
        status = agree ? agree(status) : exchange.agree(status, wait_policy);
        if (received) *received = run->received();
        return status;
    }

    engine::Exchange exchange;
    target::Worker worker;
    engine::WaitPolicy wait_policy;
    engine::Tickets tickets;
    engine::Context node;  ///< what all steps have in common
    core::Status launched;
    // between nodes: how a step begins, and how all ranks agree at its end
    std::function<void(bool spoiled)> begin;
    std::function<core::Status(core::Status const& local)> agree;

private:
    int rank_;
    int number_;
    std::unique_ptr<engine::BufferLayout> buffer_layout_;
    target::LazyFile lazy_target_;
};

/// Runs `body(thread_rank, rank)` on a thread for each rank, with buffers large enough for all `scenes`.
inline void on_threads(int ranks, std::vector<Scene> const& scenes, std::function<void(ThreadRank&, int)> const& body)
{
    NodeMemory const memory(ranks, ranks, scenes);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            ThreadRank thread_rank(memory, rank, rank);
            body(thread_rank, rank);
        });
    for (auto& thread : threads) thread.join();
}

}  // namespace tapioca::test
