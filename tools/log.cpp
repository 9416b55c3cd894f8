// tapioca log: lists, checks, reads, recovers and discards the logs of staged files.
#include <array>
#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/output.hpp"
#include "launch.hpp"
#include "log_verbs.hpp"

namespace tools {

namespace core = tapioca::core;

namespace {

struct LogVerb {
    char const* name;
    char const* arguments;
    char const* about;
    int (*run)(Words const& words);
};
constexpr std::array<LogVerb, 6> log_verbs = {
    {{"list", "[PATH...]", "lists the logs in directories, or of targets [. /dev/shm]", list_logs},
     {"dump", "PATH", "shows every request", dump_logs},
     {"verify", "PATH...", "checks everything; prints a line for each problem, and then returns 1", verify_logs},
     {"read", "PATH", "shows requests, or the data of one, also while the log is being written", read_log},
     {"recover", "TARGET", "writes the logs to the file; alone, or under mpiexec on all hosts", recover_logs},
     {"discard", "PATH", "removes logs and marker; their data is lost", discard_logs}}};

std::vector<Use> log_uses()
{
    std::vector<std::string_view> names;
    for (auto const& verb : log_verbs) names.emplace_back(verb.name);
    return {{fmt::format("{} [OPTIONS] PATH", fmt::join(names, "|")),
             "the logs of staged files (TAPIOCA_STAGE): what is in them, and what to do after a crash"}};
}

std::string log_usage()
{
    std::string text =
        "tapioca log: the logs of staged files. A staged file has a marker TARGET.tapioca; logs and marker remain "
        "after a "
        "crash.\n\n";
    for (auto const& verb : log_verbs)
        text += fmt::format("  tapioca log {:<22}{}\n", fmt::format("{} {}", verb.name, verb.arguments), verb.about);
    return text + "\nPATH is a target, a directory of logs or a .meta file. Each command has a --help.\n";
}

int run_log(Words const& words)
{
    if (words.empty() || words[0] == "--help" || words[0] == "-h") {
        fmt::print("{}", log_usage());
        return words.empty() ? 2 : 0;
    }
    for (auto const& verb : log_verbs)
        if (words[0] == verb.name) return verb.run({words.begin() + 1, words.end()});
    return fail("", fmt::format("log: unknown command {}: try tapioca log --help", words[0]));
}

}  // namespace

int fail_log(std::string const& verb, std::string const& what, int status)
{
    return fail("log " + verb, core::printable(what), status);
}

std::optional<int> parse_log(CLI::App& app, std::string const& verb, Words const& words)
{
    app.name("tapioca log " + verb);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return fail_log(verb, error.what());
    }
    return {};
}

std::string text_of(tapioca::Error const& error)
{
    constexpr std::string_view prefix = "tapioca: ";
    std::string_view text(error.what());
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    return std::string(text);
}

/// Starts an MPI program, which also works alone; under mpiexec every process becomes it.
int recover_logs(Words const& words)
{
    auto const how = take_launch(words, false);
    if (!how) return fail_log("recover", how.error().text);
    bool const alone = how->rest.size() == words.size();
    return alone ? start_alone("tapioca-recover", words) : launch("tapioca-recover", *how);
}

extern constexpr Verb log = {.name = "log", .uses = log_uses, .run = run_log};

}  // namespace tools
