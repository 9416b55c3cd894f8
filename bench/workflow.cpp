#include "workflow.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include <fmt/core.h>

#include "page_cache.hpp"
#include "settings/row.hpp"
#include "workflow_nodes.hpp"
#include "workloads/hacc.hpp"

namespace bench {

namespace {

/// A row of the table: MPI-IO, or TAPIOCA with settings.
struct WorkflowWay {
    char const* name;
    char const* label;        ///< shown to users
    char const* method;       ///< of method.hpp
    char const* ssd_setting;  ///< the setting whose value is the SSD; null: it is not used
    SettingList others;
    bool in_place;  ///< the file itself has the data
};

std::vector<WorkflowWay> const& ways()
{
    static std::vector<WorkflowWay> const all = {
        {"mpi-io", "MPI-IO collective", "collective", nullptr, {}, true},
        {"file", "TAPIOCA, file system", "tapioca", nullptr, {}, true},
        {"buffers", "TAPIOCA, aggregation on SSD", "tapioca", "aggrtier", {{"direct", "never"}}, true},  // never past
                                                                                                         // the buffers
        {"target", "TAPIOCA, SSD target", "tapioca", "target", {}, false},
    };
    return all;
}

WorkflowWay const& way_of(std::string const& name)
{
    return *std::find_if(ways().begin(), ways().end(), [&](WorkflowWay const& way) { return way.name == name; });
}

/// The directory of this run on the SSD of every host. Its name is that of the run's own directory, which is new.
class SsdDirectory {
public:
    /// `makes`: this rank is the first one of its host.
    SsdDirectory(WorkflowSetup const& setup, bool makes)
        : path_(fmt::format("{}/{}.ssd", setup.ssd, std::filesystem::path(setup.directory).filename().string())),
          makes_(makes)
    {
        if (!makes_) return;
        if (!std::filesystem::create_directory(path_))
            throw std::runtime_error(path_ + " exists: --ssd must be a directory of every node's own");
        std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
    }
    SsdDirectory(SsdDirectory const&) = delete;
    SsdDirectory& operator=(SsdDirectory const&) = delete;
    ~SsdDirectory()
    {
        std::error_code ignored;
        if (makes_) std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string const& path() const { return path_; }
    /// Removes what the last file has left. Local.
    void clear() const
    {
        if (!makes_) return;
        for (auto const& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
    }

private:
    std::string path_;
    bool makes_;
};

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

class WorkflowBench {
public:
    WorkflowBench(MPI_Comm comm, WorkflowSetup const& setup)
        : comm_(comm),
          setup_(setup),
          rank_(rank_in(comm)),
          first_(leaders_of_nodes(comm, 0)[static_cast<std::size_t>(rank_)] == rank_),
          leaders_(leaders_of_nodes(comm, setup.ranks_per_node)),
          ssd_(setup, first_),
          writing_(make(comm, [&](int ranks) { return workloads::make_hacc(ranks, setup.particles, setup.layout); })),
          reading_(writing_)
    {
        writing_.steps = setup.steps;
        if (!setup.same_ranks) static_cast<workloads::RankPart&>(reading_) = writing_.part(whose_data(leaders_, rank_));
        for (auto const& variable : writing_.variables)
            written_.emplace_back(static_cast<std::size_t>(variable.bytes()));
        for (auto const& variable : reading_.variables) read_.emplace_back(static_cast<std::size_t>(variable.bytes()));
    }

    WorkflowOutcome run()
    {
        auto const methods = setup_.methods.empty() ? workflow_methods() : setup_.methods;
        for (int repetition = -1; repetition < setup_.repetitions; ++repetition)  // the first one does not count
            for (std::size_t i = 0; i < methods.size(); ++i) {
                auto const& name = methods[(i + static_cast<std::size_t>(repetition + 1)) % methods.size()];
                if (rank_ == 0 && setup_.progress) setup_.progress(name, std::max(repetition, 0));
                run_once(name, repetition);
            }
        WorkflowOutcome outcome;
        outcome.label = writing_.label;
        outcome.layout = writing_.layout;
        outcome.readers = setup_.same_ranks           ? "every rank reads what it wrote"
                          : count_nodes(leaders_) > 1 ? "every rank reads what a rank of the next node wrote"
                                                      : "there is one node: every rank reads what the next rank wrote";
        outcome.between = between();
        MPI_Comm_size(comm_, &outcome.ranks);
        outcome.nodes = count_nodes(leaders_);
        outcome.bytes_per_rank = writing_.step_bytes / outcome.ranks;
        outcome.block_bytes = writing_.block_bytes;
        for (auto const& name : methods) outcome.costs.push_back(costs_[name]);
        return outcome;
    }

private:
    /// Seconds of one file.
    struct Seconds {
        double steps = 0, all = 0;
    };

    void run_once(std::string const& name, int repetition)
    {
        auto const& way = way_of(name);
        MethodSetup method;
        method.settings = way.others;
        if (way.ssd_setting) method.settings.emplace_back(way.ssd_setting, "ssd:" + ssd_.path());
        if (setup_.ranks_per_node > 0)
            method.settings.emplace_back("ranks_per_node", std::to_string(setup_.ranks_per_node));
        auto const path = fmt::format("{}/workflow.{}.dat", setup_.directory, files_++);
        auto const seed = static_cast<std::uint64_t>(files_);

        auto const write = write_file(*make_method(way.method, comm_, writing_, method), path, seed);
        if (rank_ == 0 && !way.in_place && std::filesystem::file_size(path) == file_bytes())
            throw std::runtime_error(fmt::format("TAPIOCA_TARGET had no effect: the data is in {}", path));
        treat_cache();
        bool verified = true;
        auto const read = read_file(*make_method(way.method, comm_, reading_, method), path, seed, verified);
        MPI_Barrier(comm_);
        if (rank_ == 0) remove_file(path);
        ssd_.clear();
        MPI_Barrier(comm_);

        auto& cost = costs_[name];
        cost.method = name;
        cost.label = way.label;
        cost.verified = everywhere(comm_, verified) && cost.verified;
        if (repetition < 0) return;
        record(cost.write, write.steps);
        record(cost.read, read.steps);
        record(cost.solution, write.all + read.all);
        cost.cached.push_back(cached_);
    }

    [[nodiscard]] std::uint64_t file_bytes() const { return static_cast<std::uint64_t>(writing_.file_bytes()); }

    void record(WorkflowFigure& figure, double seconds) const
    {
        figure.seconds.push_back(seconds);
        figure.mb_per_s.push_back(static_cast<double>(writing_.file_bytes()) / 1e6 / seconds);
    }

    Seconds write_file(Method& method, std::string const& path, std::uint64_t seed)
    {
        Seconds seconds;
        seconds.all = timed(comm_, [&] { method.open(path, true); });
        for (int step = 0; step < setup_.steps; ++step) {
            ExpectedData const data(writing_, step * writing_.step_bytes, seed);
            for (std::size_t var = 0; var < written_.size(); ++var) data.fill(var, written_[var]);
            seconds.steps += timed(comm_, [&] {
                method.move(step, written_);
                if (setup_.fsync && step + 1 == setup_.steps) method.sync();
            });
        }
        seconds.all += seconds.steps + timed(comm_, [&] { method.close(); });
        return seconds;
    }

    Seconds read_file(Method& method, std::string const& path, std::uint64_t seed, bool& verified)
    {
        Seconds seconds;
        seconds.all = timed(comm_, [&] { method.open(path, false); });
        for (int step = 0; step < setup_.steps; ++step) {
            for (auto& buffer : read_) std::fill(buffer.begin(), buffer.end(), std::byte{0xA5});
            seconds.steps += timed(comm_, [&] { method.move(step, read_); });
            ExpectedData const data(reading_, step * reading_.step_bytes, seed);
            for (std::size_t var = 0; var < read_.size(); ++var) verified = data.matches(var, read_[var]) && verified;
        }
        seconds.all += seconds.steps + timed(comm_, [&] { method.close(); });
        return seconds;
    }

    /// Does to the caches of all hosts what is asked for, and looks how much is in them. Collective.
    void treat_cache()
    {
        Directories const directories = {setup_.directory, ssd_.path()};
        if (first_ && setup_.between == Between::drop) drop_from_cache(directories);
        if (first_ && setup_.between == Between::fill)
            fill_cache(fmt::format("{}/fill.{}", setup_.directory, rank_), setup_.fill_bytes);
        MPI_Barrier(comm_);  // other hosts' files are no longer there
        cached_ = most(comm_, first_ ? cached_share(directories) : 0);
        most_cached_ = std::max(most_cached_, cached_);
    }

    /// In words, what treat_cache() has done, and with what success.
    [[nodiscard]] std::string between() const
    {
        auto const left = fmt::format("{:.0f} % of the data", most_cached_ * 100);
        auto const filled = static_cast<double>(setup_.fill_bytes) / 1e6;
        switch (setup_.between) {
        case Between::none: return "caches of files are left as they are";
        case Between::drop:
            return most_cached_ < 0.01 ? "caches of files are emptied"
                                       : "caches of files CANNOT be emptied: they keep up to " + left;
        case Between::fill:
            return fmt::format("each node moves {:.0f} MB of other data: its cache keeps up to {}", filled, left);
        }
        return {};
    }

    MPI_Comm comm_;
    WorkflowSetup const& setup_;
    int rank_;
    bool first_;                ///< this rank is the lowest of its real node
    std::vector<int> leaders_;  ///< of the nodes that are asked for
    SsdDirectory ssd_;
    BenchWorkload writing_, reading_;  ///< the same data, by different ranks
    VariableBuffers written_, read_;
    int files_ = 0;
    double cached_ = 0, most_cached_ = 0;
    std::map<std::string, WorkflowCost> costs_;
};

}  // namespace

std::vector<std::string> workflow_methods()
{
    std::vector<std::string> names;
    for (auto const& way : ways()) names.emplace_back(way.name);
    return names;
}

WorkflowOutcome measure_workflow(MPI_Comm comm, WorkflowSetup const& setup)
{
    return WorkflowBench(comm, setup).run();
}

}  // namespace bench
