// The verbs of `tapioca log`, one .cpp each, and what several of them use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "log_look.hpp"
#include "sub_verbs.hpp"

namespace tools {

using Json = nlohmann::ordered_json;

// Each takes the words after it, and returns the exit status.
int list_logs(Words const& words);
int dump_logs(Words const& words);
int verify_logs(Words const& words);
int read_log(Words const& words);
int recover_logs(Words const& words);
int discard_logs(Words const& words);

/// Prints what is wrong, and returns the status.
int fail_log(std::string const& verb, std::string const& what, int status = 2);
/// Returns nothing, or the exit status with which to end.
std::optional<int> parse_log(CLI::App& app, std::string const& verb, Words const& words);

char const* name_of(tapioca::StageMapping mapping);
Json to_json(LogFacts const& facts);
/// One row for each log.
std::string to_table(std::vector<LogFacts> const& all);
/// An Error's text without the library's name, which is replaced by the verb's.
std::string text_of(tapioca::Error const& error);

/// Calls visit(request) for all requests. What cannot be read is reported, and makes the status 1.
template <class Visit>
int each(tapioca::StageReader& reader, std::string const& verb, Visit const& visit)
{
    int status = 0;
    while (true) try {
            auto const request = reader.next();
            if (!request) return status;
            visit(*request);
        } catch (tapioca::Error const& error) {
            status = fail_log(verb, text_of(error), 1);
        }
}

}  // namespace tools
