#include "faults/sweep.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include <signal.h>
#include <unistd.h>

namespace tapioca::faults {

namespace {

namespace fs = std::filesystem;

/// What the kernel may do at any time, and the library makes up for.
bool must_go_on(Fault const& fault)
{
    bool const interrupted = fault.kind == Kind::error && fault.error == EINTR;
    return fault.kind == Kind::half || fault.kind == Kind::stall || (interrupted && fault.op != Op::open);
}

struct Arguments {
    std::string directory = "sweep";
    std::string scenario;  ///< only that
    std::string fault;     ///< only those whose description begins so
    std::string faults;    ///< only those of io, or of memory
    std::string journal;   ///< what was tried and what came of it; a second run goes on behind the last case there
    int rank = -1;
    int at = 0;     ///< only this call; below 0 counted from the last one, which is -1
    int least = 0;  ///< fewer cases that come true are a failure: nothing was tested
    int every = 1;  ///< one case in so many
    double stall_s = 0.02;
    bool talk = false;    ///< of every call
    double limit_s = 60;  ///< a case that takes longer hangs
};

Arguments parse(int argc, char** argv)
{
    Arguments a;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string const key = argv[i];
        char const* const value = argv[i + 1];
        if (key == "--dir")
            a.directory = value;
        else if (key == "--scenario")
            a.scenario = value;
        else if (key == "--fault")
            a.fault = value;
        else if (key == "--faults")
            a.faults = value;
        else if (key == "--rank")
            a.rank = std::atoi(value);
        else if (key == "--at")
            a.at = std::atoi(value);
        else if (key == "--every")
            a.every = std::atoi(value);
        else if (key == "--stall")
            a.stall_s = std::atof(value);
        else if (key == "--least")
            a.least = std::atoi(value);
        else if (key == "--talk")
            a.talk = std::atoi(value) != 0;
        else if (key == "--limit")
            a.limit_s = std::atof(value);
        else if (key == "--journal")
            a.journal = value;
        else {
            std::fprintf(stderr, "%s: unknown option %s\n", argv[0], key.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    a.directory = fs::absolute(a.directory).string();  // scenarios may work in others
    return a;
}

bool talks = false;
char hang_text[512] = "";

void tell_hang(int /*signal*/)
{
    auto const length = std::strlen(hang_text);
    if (::write(STDERR_FILENO, hang_text, length) < 0) std::abort();
    ::_exit(3);
}

struct Row {
    long cases = 0;
    long reached = 0;
    long went_on = 0;
    long failed = 0;
    long wrong = 0;
};

class Sweep {
public:
    Sweep(Arguments arguments, std::vector<Scenario> const& scenarios) : a_(std::move(arguments)), scenarios_(scenarios)
    {
        MPI_Comm_dup(MPI_COMM_WORLD, &everybody_);
        MPI_Comm_rank(everybody_, &rank_);
        MPI_Comm_size(everybody_, &ranks_);
        set_stall(a_.stall_s);
        talks = a_.talk;
        ::signal(SIGALRM, tell_hang);
        read_journal();
    }

    int run()
    {
        for (auto const& scenario : scenarios_)
            if (a_.scenario.empty() || scenario.name == a_.scenario) run(scenario);
        print_end();
        MPI_Comm_free(&everybody_);
        return total_.wrong == 0 && total_.reached >= a_.least ? 0 : 1;
    }

private:
    void run(Scenario const& scenario)
    {
        // Once to see which calls there are; the first time things are set up that stay.
        for (int i = 0; i < 3; ++i)
            if (!once(scenario, {}, 0)) {
                ++total_.wrong;
                return;
            }
        calls_ = gather_calls();
        for (auto fault : all_faults()) {
            bool const memory = fault.op == Op::memory;
            if (memory ? a_.faults == "io" : a_.faults == "memory") continue;
            if (fault.kind == Kind::truncate && scenario.writes) continue;  // what others cut off is lost
            if (!describe(fault).starts_with(a_.fault)) continue;
            Row row;
            for (int victim = 0; victim < ranks_; ++victim) {
                if (a_.rank >= 0 && victim != a_.rank) continue;
                int const most = calls_[static_cast<std::size_t>(victim)][static_cast<std::size_t>(fault.op)];
                int const only = a_.at < 0 ? most + 1 + a_.at : a_.at;
                for (fault.at = 1; fault.at <= most; ++fault.at) {
                    if (a_.at != 0 && fault.at != only) continue;
                    if (a_.every > 1 && ++case_ * 2654435761u % 4294967291u % static_cast<unsigned>(a_.every) != 0)
                        continue;
                    judge(scenario, fault, victim, row);
                }
            }
            print(scenario, fault, row);
        }
    }

    void judge(Scenario const& scenario, Fault const& fault, int victim, Row& row)
    {
        auto const key = scenario.place + "\t" + scenario.name + "\t" + describe(fault) + "\t" +
                         std::to_string(victim) + "\t" + std::to_string(fault.at);
        if (tried_.contains(key)) return;
        ++row.cases;
        note("begin\t" + key);
        auto const result = once(scenario, fault, victim);
        if (!result) {
            ++row.wrong;
            return note("wrong\t" + key);
        }
        if (result->fired == 0) return note("unreached\t" + key);  // who does what may differ from run to run
        ++row.reached;
        if (result->failed && must_go_on(fault)) {
            if (rank_ == 0)
                std::fprintf(stderr, "WRONG %s: %s %d on rank %d: an error of what is none\n", scenario.name.c_str(),
                             describe(fault).c_str(), fault.at, victim);
            ++row.wrong;
            return note("wrong\t" + key);
        }
        ++(result->failed ? row.failed : row.went_on);
        note((result->failed ? "error\t" : "on\t") + key);
    }

    void note(std::string const& line) const
    {
        if (rank_ != 0 || a_.journal.empty()) return;
        std::ofstream(a_.journal, std::ios::app) << line << '\n';
    }

    /// Cases of a run before this one, which the last of them may have ended.
    void read_journal()
    {
        std::ifstream in(a_.journal);
        for (std::string line; std::getline(in, line);)
            if (line.starts_with("begin\t")) tried_.insert(line.substr(6));
        MPI_Barrier(everybody_);
    }

    struct Result {
        int fired;
        bool failed;
    };

    /// Nothing if something was as it must not be.
    std::optional<Result> once(Scenario const& scenario, Fault const& fault, int victim, bool again = false)
    {
        auto const label =
            scenario.name + ": " +
            (fault.at > 0 ? describe(fault) + " " + std::to_string(fault.at) + " on rank " + std::to_string(victim)
                          : std::string("no fault"));
        std::snprintf(hang_text, sizeof hang_text, "HANG %s (rank %d)\n", label.c_str(), rank_);
        ::alarm(static_cast<unsigned>(a_.limit_s));
        if (rank_ == 0) fresh(a_.directory);
        MPI_Barrier(everybody_);
        auto const before = look();
        Result result{};
        std::vector<std::string> violations;
        {
            arm(rank_ == victim ? fault : Fault{});
            Trial trial(everybody_, a_.directory);
            try {
                scenario.body(trial);
            } catch (Diverged const&) {
            }
            trial.disarm();
            result = {trial.fired(), trial.failed()};
            violations = trial.violations();
        }
        MPI_Barrier(everybody_);
        // What could not be removed is still there: the next run's business.
        if (auto const left = rank_ == 0 && fault.op != Op::name ? litter(fault) : std::string(); !left.empty())
            violations.push_back("left behind: " + left);
        MPI_Barrier(everybody_);
        if (rank_ == 0) fresh(a_.directory);
        MPI_Barrier(everybody_);
        if (fault.at > 0) {
            auto more = violations.empty() ? gained(before, fault.op == Op::memory && scenario.keeps) : std::string();
            // A failure may be the first to need something that stays: then the second one needs nothing more.
            int some = more.empty() ? 0 : 1;
            MPI_Allreduce(MPI_IN_PLACE, &some, 1, MPI_INT, MPI_MAX, everybody_);
            if (some != 0 && !again) return once(scenario, fault, victim, true);
            if (!more.empty()) violations.push_back("left behind: " + more);
        }
        MPI_Allreduce(MPI_IN_PLACE, &result.fired, 1, MPI_INT, MPI_SUM, everybody_);
        int wrong = violations.empty() ? 0 : 1;
        for (auto const& text : violations)
            std::fprintf(stderr, "WRONG %s: rank %d: %s\n", label.c_str(), rank_, text.c_str());
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, everybody_);
        ::alarm(0);
        if (wrong > 0) return std::nullopt;
        return result;
    }

    /// What this process has more of than before. Threads that give memory back may take a moment.
    [[nodiscard]] std::string gained(Belongings before, bool keeps) const
    {
        if (keeps) before.allocations = before.shared_mappings = INT_MAX;
        std::string more;
        for (int wait = 0; wait < 30; ++wait) {
            more = surplus(before, look());
            more += left_over(fs::absolute(a_.directory));
            if (more.empty()) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return more;
    }

    /// What is in the directories but the two files.
    [[nodiscard]] std::string litter(Fault const& fault) const
    {
        std::string found;
        auto const belongs = [](std::string const& name) {
            return name == "file" || name == "next" ||
                   std::find(std::begin(directories), std::end(directories), "/" + name) != std::end(directories);
        };
        for (auto const* const inner : directories)
            for (auto const& entry : fs::directory_iterator(a_.directory + inner))
                if (auto const name = entry.path().filename().string(); !belongs(name))
                    found +=
                        name.ends_with(".subfiles") ? litter_of_set(entry.path(), fault) : entry.path().string() + " ";
        return found;
    }

    /// What is in a set's directory but what a complete set has there; all of it if there is no set. Journals stay if
    /// nobody knows whether the index is durable. A stub that others have cut short is none.
    [[nodiscard]] static std::string litter_of_set(fs::path const& directory, Fault const& fault)
    {
        if (fault.op == Op::sync || fault.kind == Kind::truncate) return {};
        std::error_code error;
        auto file = directory;
        if (!fs::exists(file.replace_extension(), error)) file.replace_extension();  // of file.2.subfiles
        bool const is_set = fs::file_size(file, error) == 1013;
        std::string found = is_set ? "" : directory.string() + " ";
        for (auto const& entry : fs::directory_iterator(directory))
            if (auto const name = entry.path().filename().string();
                !is_set || (name != "index" && name != "rest" && name != "stub" && !name.starts_with("subfile.")))
                found += entry.path().string() + " ";
        return found;
    }

    static void fresh(std::string const& directory)
    {
        fs::remove_all(directory);
        for (auto const* const inner : directories) fs::create_directories(directory + inner);
    }
    /// What a trial finds: for logs, for buffers, and those of two nodes for sets on a tier.
    static constexpr char const* directories[] = {"", "/stage", "/tier", "/node0", "/node1"};

    [[nodiscard]] std::vector<std::vector<int>> gather_calls() const
    {
        constexpr auto kinds = static_cast<std::size_t>(Op::ops);
        std::vector<int> mine;
        for (std::size_t op = 0; op < kinds; ++op) mine.push_back(calls(static_cast<Op>(op)));
        std::vector<int> all(kinds * static_cast<std::size_t>(ranks_));
        MPI_Allgather(mine.data(), static_cast<int>(kinds), MPI_INT, all.data(), static_cast<int>(kinds), MPI_INT,
                      everybody_);
        std::vector<std::vector<int>> of_rank;
        for (auto at = all.begin(); at != all.end(); at += kinds) of_rank.emplace_back(at, at + kinds);
        return of_rank;
    }

    void print(Scenario const& scenario, Fault const& fault, Row const& row)
    {
        total_.cases += row.cases;
        total_.reached += row.reached;
        total_.wrong += row.wrong;
        if (rank_ != 0 || row.cases == 0) return;
        std::printf("%-18s %-22s %6ld cases: %6ld went on, %6ld the same error everywhere, %ld wrong\n",
                    scenario.name.c_str(), describe(fault).c_str(), row.reached, row.went_on, row.failed, row.wrong);
        std::fflush(stdout);
    }

    void print_end() const
    {
        if (rank_ == 0)
            std::printf("%ld faults tried, %ld came true, %ld wrong\n", total_.cases, total_.reached, total_.wrong);
    }

    Arguments a_;
    std::vector<Scenario> const& scenarios_;
    MPI_Comm everybody_ = MPI_COMM_NULL;
    int rank_ = 0, ranks_ = 1;
    unsigned case_ = 0;
    std::vector<std::vector<int>> calls_;  ///< [rank][op]
    Row total_;
    std::set<std::string> tried_;
};

}  // namespace

Trial::Trial(MPI_Comm everybody, std::string directory) : everybody_(everybody), directory_(std::move(directory))
{
    MPI_Comm_dup(everybody_, &comm_);
    MPI_Comm_rank(everybody_, &rank_);
    MPI_Comm_size(everybody_, &ranks_);
}

Trial::~Trial()
{
    MPI_Comm_free(&comm_);
}

bool Trial::all(bool mine) const
{
    int good = mine ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, everybody_);
    return good != 0;
}

bool Trial::call(std::string const& what, std::function<Outcome()> const& body)
{
    Outcome mine;
    {
        Inside const inside;
        mine = body();
    }
    // Rank 0's answer, to compare with.
    constexpr int room = 1000;
    char theirs[room] = "";
    std::snprintf(theirs, room, "%d%s", mine.ok ? 1 : 0, mine.text.c_str());
    std::string const own = theirs;
    MPI_Bcast(theirs, room, MPI_CHAR, 0, everybody_);
    if (!mine.ok) failed_ = true;
    if (rank_ == 0 && talks) std::printf("  %s: %s\n", what.c_str(), mine.ok ? "ok" : mine.text.c_str());
    if (mine.text.find('\n') != std::string::npos) violations_.push_back(what + ": not one line: " + mine.text);
    bool const same = own == theirs;
    if (!same)
        violations_.push_back(what + ": here " + (mine.ok ? "ok" : mine.text) + ", on rank 0 " +
                              (theirs[0] == '1' ? "ok" : theirs + 1));
    if (!all(same)) throw Diverged();
    return mine.ok;
}

bool Trial::local_call(std::string const& /*what*/, std::function<Outcome()> const& body)
{
    Outcome mine;
    {
        Inside const inside;
        mine = body();
    }
    if (!all(mine.ok)) failed_ = true;
    return all(mine.ok);
}

void Trial::expect(bool good, std::string const& otherwise)
{
    if (!good) violations_.push_back(otherwise);
}

void Trial::disarm()
{
    if (!armed_) return;
    armed_ = false;
    fired_ = faults::disarm();
}

int sweep(int argc, char** argv, std::vector<Scenario> const& scenarios)
{
    if (argc == 2 && std::string(argv[1]) == "--list") {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (auto const& scenario : scenarios)
            if (rank == 0) std::printf("%s\n", scenario.name.c_str());
        return 0;
    }
    return Sweep(parse(argc, argv), scenarios).run();
}

}  // namespace tapioca::faults
