// Random programs that conform to the standard, run through the drop-in library in all its settings: every byte read,
// every size and the files afterwards must be what the standard requires. See --help.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "conforming_run.hpp"

namespace conforming {
namespace {

char const usage[] =
    "usage: mpiexec -n RANKS dropin_conforming [--programs N] [--first-seed S] [--seed S] [--talk] [--operations N] "
    "[--dir DIR]\n"
    "       [--staged | --unstaged | --alone | --settings \"NAME=VALUE ...\"] [--patience SECONDS]\n"
    "--seed S    runs one program; --talk tells its operations; --operations N, only so many of them and what they "
    "need\n"
    "--alone     on the MPI library alone, to judge it and the programs; also without the drop-in library\n"
    "--settings  TAPIOCA_NAME=VALUE for all programs, in place of those that the seed chooses\n";

struct Options {
    std::uint64_t programs = 300;
    std::uint64_t first_seed = 1;
    std::int64_t operations = 1000;
    unsigned patience = 60;
    bool talk = false, staged = false, unstaged = false, alone = false;
    std::string settings, directory = ".";
    bool has_settings = false;
};

bool parse(int argc, char** argv, Options& options)
{
    for (int i = 1; i < argc; ++i) {
        std::string const option = argv[i];
        if (option == "--talk")
            options.talk = true;
        else if (option == "--staged")
            options.staged = true;
        else if (option == "--unstaged")
            options.unstaged = true;
        else if (option == "--alone")
            options.alone = true;
        else if (i + 1 == argc)
            return false;
        else if (option == "--programs")
            options.programs = std::strtoull(argv[++i], nullptr, 10);
        else if (option == "--first-seed")
            options.first_seed = std::strtoull(argv[++i], nullptr, 10);
        else if (option == "--patience")
            options.patience = static_cast<unsigned>(std::atoi(argv[++i]));
        else if (option == "--operations")
            options.operations = std::atoll(argv[++i]);
        else if (option == "--dir")
            options.directory = argv[++i];
        else if (option == "--settings") {
            options.has_settings = true;
            options.settings = argv[++i];
        } else if (option == "--seed") {
            options.first_seed = std::strtoull(argv[++i], nullptr, 10);
            options.programs = 1;
        } else
            return false;
    }
    return true;
}

class Session {
public:
    Session(Options options, int me, int ranks) : options_(std::move(options)), me_(me), ranks_(ranks) {}

    int run()
    {
        for (std::uint64_t i = 0; i < options_.programs && wrong_ < 20; ++i) one(options_.first_seed + i);
        alarm(0);
        if (me_ == 0)
            std::printf(
                "%s, %d ranks: %llu programs, %llu wrong, %llu set aside since the MPI library alone is wrong\n",
                name_of(stack_), ranks_, static_cast<unsigned long long>(options_.programs),
                static_cast<unsigned long long>(wrong_), static_cast<unsigned long long>(set_aside_));
        return wrong_ == 0 ? 0 : 1;
    }

private:
    void one(std::uint64_t seed)
    {
        auto const program = make_program(seed, ranks_, stack_, options_.operations);
        auto const settings = options_.alone ? "OFF=1" : options_.has_settings ? options_.settings : settings_of(seed);
        set(settings);
        if (options_.talk && me_ == 0)
            std::fprintf(stderr, "program %llu, %s\n", static_cast<unsigned long long>(seed), settings.c_str());
        if (runs(program, options_.talk, false)) return;
        if (!options_.alone && is_the_others_fault(program)) {
            ++set_aside_;
            return;
        }
        ++wrong_;
        if (me_ == 0)
            std::fprintf(stderr, "  again: -n %d ... --seed %llu --talk --settings \"%s\"\n", ranks_,
                         static_cast<unsigned long long>(seed), settings.c_str());
    }

    bool runs(Program const& program, bool talk, bool quiet) const
    {
        alarm(options_.patience);
        return Runner(program, options_.directory, me_, talk, quiet).run();
    }

    /// Whether the MPI library alone does it wrongly too, now and then.
    bool is_the_others_fault(Program const& program) const
    {
        set("OFF=1");
        for (int i = 0; i < 5; ++i)
            if (!runs(program, false, true)) return true;
        return false;
    }

    std::string settings_of(std::uint64_t seed) const
    {
        fuzz::Random random(seed * 31 + 7);
        auto const one_of = [&](std::vector<std::string> const& values) {
            return values[static_cast<std::size_t>(random.between(0, std::ssize(values) - 1))];
        };
        if (options_.unstaged || (!options_.staged && random.chance(20))) return "";
        auto result = "STAGE=" + one_of({"dram", "dram", "ssd:" + options_.directory});
        result += " STAGE_MAPPING=" + one_of({"process", "process", "node"});
        result += " STAGE_DRAIN=" + one_of({"off", "on"});
        result += " STAGE_SYNC=" + one_of({"sync", "sync", "collective", "write"});
        result += one_of({"", "", " STAGE_SIZE=16K"});
        result += one_of({"", " BUFFERSIZE=4K"});
        return result + one_of({"", " STAGE_THROUGH=1", " STAGE_THROUGH=500", " STAGE_THROUGH=64K"});
    }

    /// In the environment, without what was there.
    static void set(std::string const& settings)
    {
        for (auto const* name : {"OFF", "STAGE", "STAGE_MAPPING", "STAGE_DRAIN", "STAGE_SYNC", "STAGE_SIZE",
                                 "STAGE_THROUGH", "BUFFERSIZE"})
            unsetenv((std::string("TAPIOCA_") + name).c_str());
        for (std::size_t from = 0; from < settings.size();) {
            auto const end = std::min(settings.find(' ', from), settings.size());
            auto const equals = settings.find('=', from);
            setenv(("TAPIOCA_" + settings.substr(from, equals - from)).c_str(),
                   settings.substr(equals + 1, end - equals - 1).c_str(), 1);
            from = end + 1;
        }
    }

    Options options_;
    int me_;
    int ranks_;
    fuzz::Stack stack_ = fuzz::stack_at_hand();
    std::uint64_t wrong_ = 0;
    std::uint64_t set_aside_ = 0;
};

}  // namespace
}  // namespace conforming

int main(int argc, char** argv)
{
    using namespace conforming;
    MPI_Init(&argc, &argv);
    int me = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Options options;
    if (!parse(argc, argv, options)) {
        if (me == 0) std::fputs(usage, stderr);
        MPI_Finalize();
        return 2;
    }
    options.directory = std::filesystem::canonical(options.directory).string();
    fuzz::tell_where_it_ends();
    if (!options.alone && !fuzz::library_is_loaded(options.directory + "/conforming.probe." + std::to_string(me))) {
        std::fputs("conforming: the library under test is not preloaded, or is turned off\n", stderr);
        MPI_Finalize();
        return 2;
    }
    auto const result = Session(options, me, ranks).run();
    MPI_Finalize();
    return result;
}
