// tapioca log: lists, checks, reads, recovers and discards the logs of staged files.
#include <array>
#include <string_view>

#include "log_verbs.hpp"

namespace tools {

namespace {

constexpr std::array<SubVerb, 6> log_verbs = {
    {{"list", "[PATH...]", "lists the logs in directories, or of targets [. /dev/shm]", list_logs},
     {"dump", "PATH", "shows every request", dump_logs},
     {"verify", "PATH...", "checks everything; prints a line for each problem, and then returns 1", verify_logs},
     {"read", "PATH", "shows requests, or the data of one, also while the log is being written", read_log},
     {"recover", "TARGET", "writes the logs to the file; alone, or under mpiexec on all hosts", recover_logs},
     {"discard", "PATH", "removes logs and marker; their data is lost", discard_logs}}};

std::vector<Use> log_uses()
{
    return {
        use_of(log_verbs, "the logs of staged files (TAPIOCA_STAGE): what is in them, and what to do after a crash")};
}

int run_log(Words const& words)
{
    return run_sub_verb("log", log_verbs, words,
                        "tapioca log: the logs of staged files. A staged file has a marker TARGET.tapioca; logs and "
                        "marker remain after a crash.",
                        "PATH is a target, a directory of logs or a .meta file. Each command has a --help.");
}

}  // namespace

int fail_log(std::string const& verb, std::string const& what, int status)
{
    return fail_sub("log " + verb, what, status);
}

std::optional<int> parse_log(CLI::App& app, std::string const& verb, Words const& words)
{
    return parse_words(app, "log " + verb, words);
}

std::string text_of(tapioca::Error const& error)
{
    constexpr std::string_view prefix = "tapioca: ";
    std::string_view text(error.what());
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    return std::string(text);
}

int recover_logs(Words const& words)
{
    return start_ranks("log recover", "tapioca-recover", words);
}

extern constexpr Verb log = {.name = "log", .uses = log_uses, .run = run_log};

}  // namespace tools
