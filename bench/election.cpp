#include "election.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace bench {

namespace {

/// The ranks with data in each of `count` equal parts of the file, ascending. Collective.
std::vector<std::vector<int>> members_of(MPI_Comm comm, BenchWorkload const& workload, int count)
{
    int size = 1;
    MPI_Comm_size(comm, &size);
    auto const parts = static_cast<std::size_t>(count);
    auto const part_of = [&](std::int64_t offset) {
        return static_cast<std::size_t>(static_cast<double>(offset) / static_cast<double>(workload.step_bytes) * count);
    };
    std::vector<char> mine(parts, 0);
    for (auto const& variable : workload.variables)
        if (variable.bytes() > 0)
            for (auto p = part_of(variable.offset); p <= part_of(variable.offset + variable.bytes() - 1); ++p)
                mine[std::min(p, parts - 1)] = 1;
    std::vector<char> all(parts * static_cast<std::size_t>(size));
    MPI_Allgather(mine.data(), count, MPI_CHAR, all.data(), count, MPI_CHAR, comm);
    std::vector<std::vector<int>> members(parts);
    for (int rank = 0; rank < size; ++rank)
        for (std::size_t p = 0; p < parts; ++p)
            if (all[static_cast<std::size_t>(rank) * parts + p]) members[p].push_back(rank);
    return members;
}

/// The papers' elections on `comm`, one partition after the other. Every rank's cost is its distance from the middle.
class Sequence {
public:
    Sequence(MPI_Comm comm, std::vector<std::vector<int>> members) : comm_(comm), members_(std::move(members))
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_group(comm, &group_);
    }
    ~Sequence() { MPI_Group_free(&group_); }
    Sequence(Sequence const&) = delete;
    Sequence& operator=(Sequence const&) = delete;

    void by_split() const
    {
        for (auto const& members : members_) {
            MPI_Comm part = MPI_COMM_NULL;
            MPI_Comm_split(comm_, belongs(members) ? 0 : MPI_UNDEFINED, rank_, &part);
            if (part != MPI_COMM_NULL) elect(part, members);
        }
    }

    void by_group() const
    {
        for (std::size_t p = 0; p < members_.size(); ++p) {
            auto const& members = members_[p];
            if (!belongs(members)) continue;
            MPI_Group ours = MPI_GROUP_NULL;
            MPI_Comm part = MPI_COMM_NULL;
            MPI_Group_incl(group_, static_cast<int>(members.size()), members.data(), &ours);
            MPI_Comm_create_group(comm_, ours, static_cast<int>(p), &part);
            MPI_Group_free(&ours);
            elect(part, members);
        }
    }

private:
    [[nodiscard]] bool belongs(std::vector<int> const& members) const
    {
        return std::binary_search(members.begin(), members.end(), rank_);
    }
    void elect(MPI_Comm part, std::vector<int> const& members) const
    {
        auto const middle = members[members.size() / 2];
        struct {
            double cost;
            int rank;
        } const mine{static_cast<double>(std::abs(rank_ - middle)), rank_};
        auto best = mine;
        MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, part);
        MPI_Comm_free(&part);
        if (best.rank != middle) throw std::runtime_error("MPI_Allreduce with MPI_MINLOC found another minimum");
    }

    MPI_Comm comm_;
    std::vector<std::vector<int>> members_;
    int rank_ = 0;
    MPI_Group group_ = MPI_GROUP_NULL;
};

/// Calls declare() with `cost.partitions` aggregators and records the result.
double declare(MPI_Comm comm, BenchWorkload const& workload, ElectionSetup const& setup, ElectionCost& cost)
{
    auto const path = setup.directory + "/tapioca-bench.election.dat";
    tapioca::Options options;
    options.nbaggr = cost.partitions;
    options.direct = tapioca::Direct::never;
    if (setup.ranks_per_node != 0)
        options.ranks_per_node = setup.ranks_per_node > 0 ? setup.ranks_per_node : std::max(1, cost.ranks / 4);
    auto file = tapioca::File::open(comm, path, tapioca::Mode::create, options);
    auto const pattern = workload.pattern();
    std::string json;
    auto const seconds = timed(comm, [&] {
        auto const step = file.declare(pattern);
        json = step.plan().json();
    });
    file.close();
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) ::unlink(path.c_str());
    MPI_Barrier(comm);
    auto const plan = nlohmann::json::parse(json);
    cost.aggregators = static_cast<int>(plan["write"]["aggregators"].size());
    cost.nodes = plan["write"].contains("network") ? plan["write"]["network"]["nodes"].get<int>() : 1;
    return seconds;
}

std::string show(Spread const& seconds)
{
    return fmt::format("{:.3f} ({:.3f}-{:.3f})", seconds.median() * 1e3, seconds.min() * 1e3, seconds.max() * 1e3);
}

}  // namespace

std::vector<ElectionCost> elect(MPI_Comm comm, BenchWorkload const& workload, ElectionSetup const& setup)
{
    std::vector<ElectionCost> costs;
    for (auto const partitions : setup.partitions) {
        auto& cost = costs.emplace_back();
        cost.partitions = partitions;
        MPI_Comm_size(comm, &cost.ranks);
        Sequence const sequence(comm, members_of(comm, workload, partitions));
        for (int repetition = -1; repetition < setup.repetitions; ++repetition) {  // the first one does not count
            auto const split = timed(comm, [&] { sequence.by_split(); });
            auto const group = timed(comm, [&] { sequence.by_group(); });
            auto const declared = declare(comm, workload, setup, cost);
            if (repetition < 0) continue;
            cost.split.push_back(split);
            cost.group.push_back(group);
            cost.declare.push_back(declared);
        }
    }
    return costs;
}

std::string table(std::string const& title, std::vector<ElectionCost> const& costs)
{
    auto text = title + "\n";
    constexpr auto row = "  {:>10}  {:>26}  {:>26}  {:>26}  {:>11}  {:>8}  {:>8}\n";
    text += fmt::format(row, "partitions", "MPI_Comm_split, one by one", "MPI groups, one by one",
                        "declare(), all of it", "aggregators", "to split", "to groups");
    for (auto const& cost : costs) {
        auto const ratio = [&](Spread const& to) {
            return fmt::format("{:.2f}x", cost.declare.median() / to.median());
        };
        text += fmt::format(row, cost.partitions, show(cost.split), show(cost.group), show(cost.declare),
                            cost.aggregators, ratio(cost.split), ratio(cost.group));
    }
    return text;
}

std::string to_json(std::vector<ElectionCost> const& costs)
{
    auto array = nlohmann::ordered_json::array();
    for (auto const& cost : costs)
        for (auto const& [method, seconds] :
             {std::pair{"split", &cost.split}, {"group", &cost.group}, {"declare", &cost.declare}})
            array.push_back({{"partitions", cost.partitions},
                             {"aggregators", cost.aggregators},
                             {"ranks", cost.ranks},
                             {"nodes", cost.nodes},
                             {"method", method},
                             {"median_s", seconds->median()},
                             {"min_s", seconds->min()},
                             {"max_s", seconds->max()},
                             {"cv", seconds->cv()}});
    return array.dump(2);
}

}  // namespace bench
