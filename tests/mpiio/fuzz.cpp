// The differential fuzzer of the drop-in library: makes the same random MPI-IO calls on a file that the library leaves
// to MPI and on one that it serves. If they differ, a model of the standard decides which is right.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "fuzz_known.hpp"

namespace fuzz {
namespace {

struct Settings {
    std::uint64_t cases = 500;
    std::uint64_t first_seed = 1;
    double seconds = 0;
    unsigned patience = 60;
    bool verbose = false;
    bool survey = false;
    std::string directory = ".";
};

char const usage[] =
    "usage: mpiexec -n RANKS dropin_fuzz [--cases N] [--first-seed S] [--seconds T] [--dir DIR]\n"
    "       [--patience SECONDS] [--verbose] [--survey]\n"
    "--survey counts what MPI alone does against the standard and is not documented, instead of failing\n";

bool parse(int argc, char** argv, Settings& settings)
{
    for (int i = 1; i < argc; ++i) {
        std::string const option = argv[i];
        if (option == "--verbose" || option == "--survey") {
            (option == "--verbose" ? settings.verbose : settings.survey) = true;
            continue;
        }
        if (i + 1 >= argc) return false;
        char* end = nullptr;
        char const* value = argv[++i];
        if (option == "--cases")
            settings.cases = std::strtoull(value, &end, 10);
        else if (option == "--first-seed")
            settings.first_seed = std::strtoull(value, &end, 10);
        else if (option == "--patience")
            settings.patience = static_cast<unsigned>(std::strtoul(value, &end, 10));
        else if (option == "--seconds")
            settings.seconds = std::strtod(value, &end);
        else if (option == "--dir")
            settings.directory = value;
        else
            return false;
        if (end != nullptr && (*end != '\0' || end == value)) return false;
    }
    return true;
}

/// How a step went, worst last; the ranks agree on the worst.
enum Verdict { Fine, Repair, Abandon, Failed };

/// Of all cases, by name.
using Kinds = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;  // how often, first seed

class Fuzzer {
public:
    Fuzzer(Settings settings, int me, int ranks) : settings_(std::move(settings)), me_(me), ranks_(ranks) {}

    int run()
    {
        auto const start = MPI_Wtime();
        std::uint64_t done = 0;
        bool const terminal = me_ == 0 && isatty(STDERR_FILENO) == 1;
        for (; done < settings_.cases && failures_ < 20; ++done) {
            int stop = settings_.seconds > 0 && MPI_Wtime() - start > settings_.seconds ? 1 : 0;
            if (settings_.seconds > 0) MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (stop != 0) break;
            alarm(settings_.patience);
            one_case(settings_.first_seed + done);
            if (terminal && done % 50 == 49)
                std::fprintf(stderr, "\r%llu cases", static_cast<unsigned long long>(done + 1));
        }
        alarm(0);
        if (terminal) std::fprintf(stderr, "\n");
        report(done, MPI_Wtime() - start);
        return failures_ == 0 ? 0 : 1;
    }

private:
    struct Pair {
        Subject alone;
        Subject through;
    };

    void one_case(std::uint64_t seed)
    {
        std::snprintf(where_am_i, sizeof where_am_i, "seed %llu, its making", static_cast<unsigned long long>(seed));
        case_ = make_case(seed, ranks_, me_, avoided(stack_));
        pairs_.clear();
        for (std::size_t i = 0; i < case_.before.size(); ++i) {
            auto const path = [&](char const* what) {
                return settings_.directory + "/fuzz." + std::to_string(i) + "." + what;
            };
            pairs_.push_back({Subject(path("alone"), true, handlers()), Subject(path("through"), false, handlers())});
            if (me_ == 0)
                for (auto const* subject : {&pairs_[i].alone, &pairs_[i].through}) {
                    unlink(subject->path().c_str());
                    unlink((subject->path() + ".tapioca").c_str());  // the mark that a dead run of staged files left
                    write_file(subject->path(), {case_.existed[i], case_.before[i]});
                }
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (settings_.verbose && me_ == 0) describe(case_.steps.size());
        for (step_ = 0; step_ < case_.steps.size(); ++step_) {
            auto const verdict = one_step();
            if (verdict == Failed) ++failures_;
            if (verdict >= Abandon) {
                for (auto& pair : pairs_) {
                    pair.alone.abandon();
                    pair.through.abandon();
                }
                break;
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (me_ == 0)
            for (auto const& pair : pairs_) {
                unlink(pair.alone.path().c_str());
                unlink(pair.through.path().c_str());
            }
    }

    bool handlers() const { return case_.seed % 3 == 0; }

    /// Does the step at step_, and the next one too where that comes between the start and the end of this one;
    /// `within`: this is one that does.
    Verdict one_step(bool within = false)
    {
        auto const number = step_;
        auto const& step = case_.steps[number];
        auto& [alone, through] = pairs_[static_cast<std::size_t>(step.file)];
        say_where(step);
        bool const swapped = (case_.seed + number) % 2 == 0;
        auto& first = swapped ? through : alone;
        auto& second = swapped ? alone : through;
        Observed seen[2];
        first.start(step, me_);
        bool const overlapped =
            step.what == Do::Data && (step.how == How::Split || step.how == How::Nonblocking || step.alone_blocks);
        if (!overlapped) seen[0] = first.finish(step, me_);
        second.start(step, me_);
        auto worst = Fine;
        if (overlapped && !within && number + 1 < case_.steps.size() && case_.steps[number + 1].file != step.file &&
            may_come_between(stack_, case_.steps[number + 1])) {
            ++step_;
            worst = one_step(true);
            say_where(step);
        }
        if (overlapped) seen[0] = first.finish(step, me_);
        seen[1] = second.finish(step, me_);
        auto const after = step_;
        step_ = number;
        worst = std::max(worst, compare(step, seen[swapped ? 1 : 0], seen[swapped ? 0 : 1]));
        step_ = after;
        return worst;
    }

    /// Collective. Both files are afterwards as they ought to be, unless the verdict is worse than Repair.
    Verdict compare(Step const& step, Observed& a, Observed& t)
    {
        auto const& part = step.parts[static_cast<std::size_t>(me_)];
        auto& [alone, through] = pairs_[static_cast<std::size_t>(step.file)];
        if (step.shared >= 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            a.shared = alone.shared_position();
            t.shared = through.shared_position();
        }
        verdict_ = Fine;
        if (part.takes_part)
            for (auto const& finding : judge(step, part, a, t, handlers())) weigh(step, finding);
        if (step.look_at_file) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (me_ == 0) {
                std::string said;
                auto const written =
                    is_open_question(step) ? Contents{step.exists, *step.contents} : read_file(through.path());
                for (auto const& finding : judge_files(step, read_file(alone.path()), written, said))
                    weigh(step, finding);
                if (settings_.verbose || verdict_ == Failed) std::fputs(said.c_str(), stderr);
            }
        }
        int worst = verdict_;
        MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (worst == Repair) {
            if (me_ == 0 && step.look_at_file) {
                repair(step, alone.path());
                if (!is_open_question(step)) repair(step, through.path());
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (part.takes_part && a.has_position && alone.is_open())
                for (auto* subject : {&alone, &through}) subject->seek(part.position);
            if (step.shared >= 0)
                for (auto* subject : {&alone, &through}) subject->seek_shared(step.shared);
        }
        return static_cast<Verdict>(worst);
    }

    /// A staged write is in the file only after a sync, a close or the like.
    bool is_open_question(Step const& step) const { return staged_ && step.what == Do::Data && !step.in_file; }

    static void repair(Step const& step, std::string const& path)
    {
        Contents const expected{step.exists, *step.contents};
        if (read_file(path) != expected) write_file(path, expected);
    }

    void say_where(Step const& step) const
    {
        std::snprintf(where_am_i, sizeof where_am_i, "seed %llu, step %zu on rank %d: {%s} %.150s",
                      static_cast<unsigned long long>(case_.seed), step_, me_, step.features.c_str(),
                      step.text.substr(0, step.text.find('\n')).c_str());
    }

    /// What the library under test does itself must be right; what MPI does wrongly must be documented.
    void weigh(Step const& step, Finding const& finding)
    {
        auto const [what, alone_right, through_right, equal] = finding;
        bool const ours = !through_right && step.served && what != What::Holes &&
                          !(what == What::Position && step.wild_view && step.where == Where::At);
        char const* kind = step.alone == Alone::Direct && what != What::Holes && what != What::Position
                               ? nullptr
                               : known_deviation(stack_, step, me_, what);
        std::string undocumented;
        if (kind == nullptr && settings_.survey && !ours) {
            undocumented = std::string("undocumented: ") + name_of(what) + " of " + (step.fails ? "failing " : "") +
                           step.text.substr(0, step.text.find_first_of("\n")) + " {" + step.features + "}";
            kind = undocumented.c_str();
        }
        bool const explained = kind != nullptr && !ours && (through_right || equal || by_chance(stack_, step, what));
        if (!explained)
            return fail(step, what,
                        std::string("alone ") + (alone_right ? "right" : "wrong") + ", through " +
                            (through_right ? "right" : "wrong") + (equal ? ", the same" : ", different"));
        note(std::string(kind) + (through_right ? " [right through the library]" : ""));
        verdict_ = std::max(verdict_, what == What::Class && step.what == Do::Open ? Abandon : Repair);
    }

    void note(std::string const& kind)
    {
        auto& [times, seed] = kinds_[kind];
        if (times++ == 0) seed = case_.seed;
    }

    void fail(Step const& step, What what, std::string const& how)
    {
        auto const line = step.text.substr(0, step.text.find('\n'));
        std::fprintf(stderr, "FAILURE seed %llu, rank %d, step %zu (%s) {%s}: %s: %s\n",
                     static_cast<unsigned long long>(case_.seed), me_, step_, line.c_str(), step.features.c_str(),
                     name_of(what), how.c_str());
        if (verdict_ != Failed) {
            describe(step_ + 1);
            std::fprintf(stderr, "  again: -n %d ... --cases 1 --first-seed %llu --verbose\n", ranks_,
                         static_cast<unsigned long long>(case_.seed));
        }
        verdict_ = Failed;
    }

    void describe(std::size_t steps) const
    {
        std::string text = "  case " + std::to_string(case_.seed) + ", " + std::to_string(ranks_) + " ranks\n";
        for (std::size_t i = 0; i < case_.before.size(); ++i)
            text += "  file " + std::to_string(i) +
                    (case_.existed[i] ? " has " + std::to_string(case_.before[i].size()) + " bytes\n" : " is new\n");
        for (std::size_t i = 0; i < steps; ++i)
            text += "  " + std::to_string(i) + ": file " + std::to_string(case_.steps[i].file) + ": " +
                    case_.steps[i].text + "\n";
        std::fputs(text.c_str(), stderr);
    }

    /// Rank 0 says how it went; the kinds are those of all ranks.
    void report(std::uint64_t done, double seconds)
    {
        std::string mine;
        for (auto const& [kind, counts] : kinds_)
            mine += kind + "\t" + std::to_string(counts.first) + "\t" + std::to_string(counts.second) + "\n";
        int length = static_cast<int>(mine.size());
        std::vector<int> lengths(static_cast<std::size_t>(ranks_));
        MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
        std::vector<int> at(lengths.size());
        for (std::size_t i = 1; i < at.size(); ++i) at[i] = at[i - 1] + lengths[i - 1];
        std::string all(static_cast<std::size_t>(at.back() + lengths.back()), ' ');
        MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), at.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
        if (me_ != 0) return;
        Kinds kinds;
        for (std::size_t from = 0; from < all.size();) {
            auto const end = all.find('\n', from);
            auto const line = all.substr(from, end - from);
            from = end + 1;
            auto const tab = line.find('\t');
            auto const next = line.find('\t', tab + 1);
            auto& [times, seed] = kinds[line.substr(0, tab)];
            auto const first = std::stoull(line.substr(next + 1));
            seed = times == 0 ? first : std::min<std::uint64_t>(seed, first);
            times += std::stoull(line.substr(tab + 1, next - tab - 1));
        }
        std::printf("%s, %d ranks: %llu cases in %.1f s, %llu failures\n", name_of(stack_), ranks_,
                    static_cast<unsigned long long>(done), seconds, static_cast<unsigned long long>(failures_));
        for (auto const& [kind, counts] : kinds)
            std::printf("  %8llu x %s (first: seed %llu)\n", static_cast<unsigned long long>(counts.first),
                        kind.c_str(), static_cast<unsigned long long>(counts.second));
    }

    Settings settings_;
    int me_;
    int ranks_;
    Stack stack_ = stack_at_hand();
    bool staged_ = std::getenv("TAPIOCA_STAGE") != nullptr;
    Case case_;
    std::vector<Pair> pairs_;
    std::size_t step_ = 0;
    Verdict verdict_ = Fine;
    std::uint64_t failures_ = 0;
    Kinds kinds_;
};

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int me = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fuzz::Settings settings;
    if (!fuzz::parse(argc, argv, settings)) {
        if (me == 0) std::fputs(fuzz::usage, stderr);
        MPI_Finalize();
        return 2;
    }
    fuzz::tell_where_it_ends();
    auto const probe = settings.directory + "/fuzz.probe." + std::to_string(me);
    if (!fuzz::library_is_loaded(probe)) {
        std::fputs("fuzz: the library under test is not preloaded, or is turned off\n", stderr);
        MPI_Finalize();
        return 2;
    }
    auto const result = fuzz::Fuzzer(settings, me, ranks).run();
    MPI_Finalize();
    return result;
}
