// The differential fuzzer of the drop-in library: the same random MPI-IO calls on a file that the library leaves to
// MPI and on one that it serves, and a model of the standard that says which of the two is right where they differ.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// For the signal handlers: where the program is.
char where_am_i[256] = "before the first case";

void last_words(int signal)
{
    char text[400];
    auto const length =
        std::snprintf(text, sizeof text, "fuzz: %s in %s\n", signal == SIGALRM ? "no progress" : "a crash", where_am_i);
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {}
    std::signal(signal, SIG_DFL);
    if (signal == SIGALRM) _exit(99);
    std::raise(signal);
}

void write_file(std::string const& path, bool exists, Bytes const& bytes)
{
    unlink(path.c_str());
    if (!exists) return;
    int const file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        std::fprintf(stderr, "fuzz: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    ::close(file);
}

struct Contents {
    bool exists = false;
    Bytes bytes;
    bool operator==(Contents const&) const = default;
};

Contents read_file(std::string const& path)
{
    Contents contents;
    int const file = ::open(path.c_str(), O_RDONLY);
    if (file < 0) return contents;
    contents.exists = true;
    struct stat about {};
    fstat(file, &about);
    contents.bytes.resize(static_cast<std::size_t>(about.st_size));
    auto const got = pread(file, contents.bytes.data(), contents.bytes.size(), 0);
    contents.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    ::close(file);
    return contents;
}

/// How a step went, worst last; the ranks agree on the worst.
enum Verdict { Fine, Resync, Abandon, Failed };

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
            bool const handler = seed % 3 == 0;
            pairs_.push_back({Subject(path("alone"), true, handler), Subject(path("through"), false, handler)});
            if (me_ == 0)
                for (auto const* subject : {&pairs_[i].alone, &pairs_[i].through})
                    write_file(subject->path(), case_.existed[i], case_.before[i]);
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

    Verdict one_step()
    {
        auto const& step = case_.steps[step_];
        auto const& part = step.parts[static_cast<std::size_t>(me_)];
        auto& [alone, through] = pairs_[static_cast<std::size_t>(step.file)];
        std::snprintf(where_am_i, sizeof where_am_i, "seed %llu, step %zu on rank %d: {%s} %.150s",
                      static_cast<unsigned long long>(case_.seed), step_, me_, step.features.c_str(),
                      step.text.substr(0, step.text.find('\n')).c_str());
        bool const swapped = (case_.seed + step_) % 2 == 0;
        auto& first = swapped ? through : alone;
        auto& second = swapped ? alone : through;
        Observed seen[2];
        first.start(step, me_);
        bool const overlapped = step.what == Do::Data && step.how != How::Blocking && step.how != How::All;
        if (!overlapped) seen[0] = first.finish(step, me_);
        second.start(step, me_);
        if (overlapped) seen[0] = first.finish(step, me_);
        seen[1] = second.finish(step, me_);
        if (step.shared >= 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            seen[0].shared = first.shared_position();
            seen[1].shared = second.shared_position();
        }
        verdict_ = Fine;
        if (part.takes_part) judge(step, part, seen[swapped ? 1 : 0], seen[swapped ? 0 : 1]);
        if (step.look_at_file || settings_.verbose) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (me_ == 0 && step.look_at_file) judge_file(step, alone.path(), through.path());
        }
        int worst = verdict_;
        MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (worst == Resync && step.what != Do::Close) {
            if (part.takes_part && verdict_ == Resync && wrong_position_)
                for (auto* subject : {&alone, &through}) subject->seek(part.position);
            if (step.shared >= 0)
                for (auto* subject : {&alone, &through}) subject->seek_shared(step.shared);
        }
        return static_cast<Verdict>(worst);
    }

    void judge(Step const& step, Part const& part, Observed const& a, Observed const& t)
    {
        wrong_position_ = false;
        auto same = [&](What what, auto const& alone, auto const& through, auto const& expected) {
            one(step, what, alone == expected, through == expected, alone == through, a);
        };
        if (step.fails) {  // which class it is the standard rarely says
            one(step, What::Class, a.error_class != MPI_SUCCESS, t.error_class != MPI_SUCCESS,
                a.error_class == t.error_class, a);
            if (a.error_class != t.error_class && a.error_class != MPI_SUCCESS && t.error_class != MPI_SUCCESS)
                fail(step, What::Class,
                     "alone " + std::to_string(a.error_class) + ", through " + std::to_string(t.error_class));
            if (step.what != Do::Open && step.what != Do::Null)
                one(step, What::Handler, a.handler_calls == (case_.seed % 3 == 0 ? 1 : 0),
                    t.handler_calls == (case_.seed % 3 == 0 ? 1 : 0), a.handler_calls == t.handler_calls, a);
        } else {
            same(What::Class, a.error_class, t.error_class, MPI_SUCCESS);
            same(What::Handler, a.handler_calls, t.handler_calls, 0);
        }
        if (step.what == Do::Data) {
            if (!step.fails && a.error_class == MPI_SUCCESS && t.error_class == MPI_SUCCESS) {
                auto const size = part.type->size;
                std::int64_t const count = size == 0 ? 0 : part.moved % size == 0 ? part.moved / size : MPI_UNDEFINED;
                same(What::Elements, a.elements, t.elements, part.moved);
                same(What::Count, a.count, t.count, count);
            }
            auto alone = a.buffer;
            auto through = t.buffer;
            auto beyond = [&](Bytes const& bytes) {
                Bytes out;
                for (auto const& [at, length] : part.beyond) out.push_back(bytes[static_cast<std::size_t>(at)]);
                return out;
            };
            same(What::Beyond, beyond(alone), beyond(through), beyond(part.after));
            for (auto* bytes : {&alone, &through})
                for (auto const& [at, length] : part.beyond)
                    (*bytes)[static_cast<std::size_t>(at)] = part.after[static_cast<std::size_t>(at)];
            same(What::Buffer, alone, through, part.after);
        }
        if (step.what == Do::Query) same(What::Values, a.values, t.values, part.values);
        if (step.what != Do::Close && !(step.what == Do::Open && step.fails) && !sequential()) {
            wrong_position_ = a.position != part.position || t.position != part.position;
            same(What::Position, a.position, t.position, part.position);
        }
        if (step.shared >= 0) same(What::Shared, a.shared, t.shared, step.shared);
    }

    bool sequential() const
    {
        for (auto i = step_ + 1; i-- > 0;)
            if (case_.steps[i].what == Do::Open && case_.steps[i].file == case_.steps[step_].file)
                return (case_.steps[i].amode & MPI_MODE_SEQUENTIAL) != 0;
        return false;
    }

    void judge_file(Step const& step, std::string const& alone, std::string const& through)
    {
        Contents const expected{step.exists, *step.contents};
        auto a = read_file(alone);
        auto t = read_file(through);
        if (a == expected && t == expected) return;
        bool holes[2] = {true, true};
        for (std::size_t i = 0; i < expected.bytes.size(); ++i)
            for (auto* which : {&a, &t})
                if ((*step.defined)[i] == 0 && i < which->bytes.size() && which->bytes[i] != 0) {
                    holes[which == &a ? 0 : 1] = false;
                    which->bytes[i] = 0;
                }
        one(step, What::Holes, holes[0], holes[1], holes[0] == holes[1], {});
        if (a == expected && t == expected) return;
        one(step, What::File, a == expected, t == expected, a == t, {});
        if (settings_.verbose || verdict_ == Failed)
            for (auto const* which : {&a, &t}) {
                auto const at = std::mismatch(which->bytes.begin(), which->bytes.end(), expected.bytes.begin(),
                                              expected.bytes.end())
                                    .first -
                                which->bytes.begin();
                std::fprintf(stderr, "  %s: %s, %zu bytes, expected %zu, first difference at %td\n",
                             which == &a ? "alone" : "through", which->exists ? "exists" : "is absent",
                             which->bytes.size(), expected.bytes.size(), at);
            }
    }

    /// One thing that was looked at on one rank.
    void one(Step const& step, What what, bool alone_right, bool through_right, bool equal, Observed const& alone)
    {
        if (alone_right && through_right) return;
        // Bytes that were not read or not written are left to chance where they are not left alone.
        bool const chance = what == What::Beyond || what == What::Holes ||
                            (stack_ == Stack::Ompio && !alone_right && step.features.find('O') != std::string::npos);
        char const* kind = alone_right && !chance ? nullptr : known_deviation(stack_, step, me_, what, alone);
        std::string undocumented;
        if (kind == nullptr && (!alone_right || chance) && settings_.survey && !step.fails) {
            undocumented = std::string("undocumented: ") + name_of(what) + " of " +
                           step.text.substr(0, step.text.find_first_of("\n")) + " {" + step.features + "}";
            kind = undocumented.c_str();
        } else if (kind == nullptr && (!alone_right || chance) && settings_.survey) {
            undocumented = std::string("undocumented: ") + name_of(what) + " of failing " + step.text;
            kind = undocumented.c_str();
        }
        bool const explained = kind != nullptr && (through_right || equal || chance);
        if (!explained)
            return fail(step, what,
                        std::string("alone ") + (alone_right ? "right" : "wrong") + ", through " +
                            (through_right ? "right" : "wrong") + (equal ? ", the same" : ", different"));
        note(std::string(kind) + (through_right ? " [right through the library]" : ""));
        bool const lost = what == What::File || what == What::Class;
        verdict_ = std::max(verdict_, lost ? Abandon : Resync);
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
    Case case_;
    std::vector<Pair> pairs_;
    std::size_t step_ = 0;
    Verdict verdict_ = Fine;
    bool wrong_position_ = false;
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
    for (auto signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM}) std::signal(signal, fuzz::last_words);
    auto const result = fuzz::Fuzzer(settings, me, ranks).run();
    MPI_Finalize();
    return result;
}
