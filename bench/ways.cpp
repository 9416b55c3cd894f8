#include "ways.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "timing.hpp"

namespace bench {

namespace {

constexpr int learning_steps = 96;  // steps before the learnt choice is measured, and so before all others, too
constexpr std::int64_t timed_bytes = 64 << 20;  // of all timed steps together, if that is not too many

double median(std::vector<double> const& values, std::size_t first, std::size_t step)
{
    Spread spread;
    for (std::size_t i = first; i < values.size(); i += step) spread.push_back(values[i]);
    return spread.median();
}

/// The first of the odd repetitions; the only repetition, if there is no second.
std::size_t first_to_compare(std::vector<double> const& values)
{
    return values.size() > 1 ? 1 : 0;
}

/// Seconds of `better` divided by those of `taken`, in the odd repetitions.
double ratio(std::vector<double> const& better, std::vector<double> const& taken)
{
    auto const first = first_to_compare(taken);
    return median(better, first, 2) / median(taken, first, 2);
}

/// How often a repetition of `better` took less time than one of `taken`, among all pairs of odd ones: 0.5 if they do
/// not differ, 1 if they do not overlap.
double certainty(std::vector<double> const& better, std::vector<double> const& taken)
{
    auto const first = first_to_compare(taken);
    int less = 0;
    int pairs = 0;
    for (auto i = first; i < better.size(); i += 2)
        for (auto j = first; j < taken.size(); j += 2, ++pairs) less += better[i] < taken[j] ? 1 : 0;
    return pairs > 0 ? static_cast<double>(less) / pairs : 0;
}

class WaysBench {
public:
    WaysBench(MPI_Comm comm, BenchWorkload workload, Setup const& setup)
        : comm_(comm), workload_(std::move(workload)), setup_(setup)
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        for (auto const& variable : workload_.variables)
            buffers_.emplace_back(static_cast<std::size_t>(variable.bytes()));
        choose_steps();
    }

    std::vector<WaysOutcome> run()
    {
        std::vector<WaysOutcome> outcomes;
        for (auto const* const op : {"write", "read"})
            for (auto const* const interface : {"declared", "drop-in"}) {
                if (op == std::string_view("read") && !setup_.read) continue;
                if (interface == std::string_view("drop-in") && !setup_.dropin) continue;
                outcomes.push_back(measure(op, interface));
            }
        return outcomes;
    }

private:
    /// Chooses so many steps that they take a while, but no more than fit if steps of several ranks interleave.
    void choose_steps()
    {
        auto const enough = static_cast<int>(
            std::clamp<std::int64_t>(timed_bytes / std::max<std::int64_t>(1, workload_.step_bytes), 2, 64));
        if (workload_.interleaved_by == 0) {
            learning_ = std::clamp(4 * enough, 8, learning_steps);
            timed_ = enough;
            workload_.steps = learning_ + timed_;
            return;
        }
        learning_ = std::min(learning_steps, workload_.steps / 2);
        timed_ = std::min(enough, workload_.steps - learning_);
        if (learning_ < 1 || timed_ < 1) throw std::runtime_error("--ways: a file of at least two calls is needed");
    }

    WaysOutcome measure(std::string const& op, std::string const& interface)
    {
        WaysOutcome outcome;
        outcome.label = workload_.label;
        outcome.op = op;
        outcome.interface = interface;
        outcome.ranks = size_;
        outcome.step_bytes = workload_.step_bytes;
        outcome.timed_steps = timed_;
        look_at_plan(outcome);
        auto const method = interface == "declared" ? "tapioca" : "collective-dropin";
        auto const source = op == "read" ? prepare() : std::string();
        struct Turn {
            std::string method;
            SettingList settings;
            std::vector<double>* seconds;
        };
        std::vector<Turn> turns = {{method, {{"learn", "off"}}, &outcome.default_s},
                                   {method, {{"learn", "on"}}, &outcome.learnt_s}};
        for (auto& way : outcome.ways)
            turns.push_back({way.predicted_s ? method : "collective", way.settings, &way.seconds});
        for (int repetition = 0; repetition < setup_.repetitions; ++repetition) {
            tell(fmt::format("{} {}", op, interface), repetition);
            for (auto& [by, settings, seconds] : turns) seconds->push_back(step(by, settings, source, outcome));
            // The order may matter, for example because of data that is still to be written to disk.
            std::rotate(turns.begin(), turns.begin() + 1, turns.end());
        }
        if (rank_ == 0 && !source.empty()) ::unlink(source.c_str());
        return outcome;
    }

    void tell(std::string const& what, int repetition) const
    {
        if (rank_ == 0 && setup_.progress) setup_.progress(what, repetition);
    }

    /// Finds the possible ways, and the one that is taken, from a plan that is made but not used. Collective.
    void look_at_plan(WaysOutcome& outcome)
    {
        auto const path = next_path();
        nlohmann::json plan;
        {
            auto file = tapioca::File::open(comm_, path, tapioca::Mode::create);
            plan = nlohmann::json::parse(file.declare(workload_.pattern()).plan().json());
            file.close();
        }
        if (rank_ == 0) ::unlink(path.c_str());
        auto const& route = plan[outcome.op];
        if (!route.contains("alternatives")) throw std::runtime_error("--ways: for one node only");
        auto const count = route["aggregators"].size();
        outcome.chosen =
            route["way"] == "direct" ? "direct" : fmt::format("{} aggregator{}", count, count == 1 ? "" : "s");
        for (auto const& one : route["alternatives"]) {
            auto const aggregators = one["aggregators"].get<int>();
            auto& way = outcome.ways.emplace_back();
            way.name = one["way"];
            way.predicted_s = one["seconds"];
            way.settings = {{"learn", "off"}, {"leave", "0"}, {"direct", aggregators == 0 ? "always" : "never"}};
            if (aggregators == 0) continue;
            way.settings.emplace_back("nbaggr", std::to_string(aggregators));
            way.settings.emplace_back("nbaggr_read", std::to_string(aggregators));
            if (auto const bytes = one["buffer_bytes"].get<std::uint64_t>(); bytes > 0)
                way.settings.emplace_back("buffersize", std::to_string(bytes));
        }
        if (outcome.interface == "drop-in") outcome.ways.push_back({"left to the MPI library", {}, {}, {}});
        if (outcome.ways.empty()) throw std::runtime_error("--ways: the settings leave no choice");
    }

    std::string next_path() { return fmt::format("{}/tapioca-bench.ways.{}.dat", setup_.directory, files_++); }

    void fill(int step)
    {
        for (std::size_t var = 0; var < buffers_.size(); ++var)
            ExpectedData(workload_, step * workload_.step_shift, seed_).fill(var, buffers_[var]);
    }

    [[nodiscard]] bool buffers_match(int step) const
    {
        bool same = true;
        for (std::size_t var = 0; var < buffers_.size(); ++var)
            same = ExpectedData(workload_, step * workload_.step_shift, seed_).matches(var, buffers_[var]) && same;
        return same;
    }

    /// Makes a file with all steps, for all reads. Collective.
    std::string prepare()
    {
        auto const path = next_path();
        auto const method = make_method("tapioca", comm_, workload_, setup_.method);
        method->open(path, true);
        for (int step = 0; step < workload_.steps; ++step) {
            fill(step);
            method->move(step, buffers_);
        }
        method->close();
        return path;
    }

    /// Seconds of a step, measured after the steps in which something may be learnt. Reads from `source`, or writes if
    /// it is empty. Collective.
    double step(std::string const& name, SettingList const& settings, std::string const& source, WaysOutcome& outcome)
    {
        bool const writing = source.empty();
        auto const path = writing ? next_path() : source;
        auto setup = setup_.method;
        setup.settings = settings;
        auto const method = make_method(name, comm_, workload_, setup);
        method->open(path, writing);
        // MPI-IO with a view continues from its position, so no step is left out.
        for (int step = 0; step < learning_; ++step) move(*method, step, writing);
        double seconds = 0;
        bool right = true;
        for (int step = learning_; step < learning_ + timed_; ++step) {
            if (writing) fill(step);
            seconds += timed(comm_, [&] { method->move(step, buffers_); });
            if (!writing) right = buffers_match(step) && right;
        }
        method->close();
        if (writing) right = check(path, learning_ + timed_);
        outcome.verified = everywhere(comm_, right) && outcome.verified;
        if (rank_ == 0 && writing) ::unlink(path.c_str());
        MPI_Barrier(comm_);
        return seconds / timed_;
    }

    void move(Method& method, int step, bool writing)
    {
        if (writing) fill(step);
        method.move(step, buffers_);
    }

    /// Whether this rank's bytes of the first `steps` steps are in the file, according to plain reads. Local.
    bool check(std::string const& path, int steps)
    {
        auto file = tapioca::File::open(MPI_COMM_SELF, path, tapioca::Mode::read);
        auto step = file.declare(workload_.pattern());
        bool right = true;
        for (int i = 0; i < steps; ++i) {
            step.rebase(i * workload_.step_shift);
            for (std::size_t var = 0; var < buffers_.size(); ++var) step.read(var, std::span<std::byte>(buffers_[var]));
            step.finish();
            right = buffers_match(i) && right;
        }
        file.close();
        return right;
    }

    MPI_Comm comm_;
    BenchWorkload workload_;
    Setup const& setup_;
    int rank_ = 0, size_ = 1;
    int learning_ = 1, timed_ = 1;
    int files_ = 0;
    std::uint64_t seed_ = 17;
    VariableBuffers buffers_;
};

}  // namespace

std::size_t WaysOutcome::best() const
{
    auto const at = std::min_element(ways.begin(), ways.end(), [](WayCell const& a, WayCell const& b) {
        return median(a.seconds, 0, 2) < median(b.seconds, 0, 2);
    });
    return static_cast<std::size_t>(at - ways.begin());
}

double WaysOutcome::regret() const
{
    return ways[best()].name == chosen ? 1 : ratio(ways[best()].seconds, default_s);
}

double WaysOutcome::regret_after_learning() const
{
    return ratio(ways[best()].seconds, learnt_s);
}

double WaysOutcome::certainty() const
{
    return ways[best()].name == chosen ? 0.5 : bench::certainty(ways[best()].seconds, default_s);
}

double WaysOutcome::certainty_after_learning() const
{
    return bench::certainty(ways[best()].seconds, learnt_s);
}

std::vector<WaysOutcome> measure_ways(MPI_Comm comm, BenchWorkload workload, Setup const& setup)
{
    return WaysBench(comm, std::move(workload), setup).run();
}

}  // namespace bench
