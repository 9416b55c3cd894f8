#include "sub_verbs.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/output.hpp"
#include "launch.hpp"

namespace tools {

namespace core = tapioca::core;

Use use_of(std::span<SubVerb const> all, std::string const& about)
{
    std::vector<std::string_view> names;
    for (auto const& one : all) names.emplace_back(one.name);
    return {fmt::format("{} [OPTIONS] PATH", fmt::join(names, "|")), about};
}

int run_sub_verb(std::string const& verb, std::span<SubVerb const> all, Words const& words, std::string const& intro,
                 std::string const& outro)
{
    if (words.empty() || words[0] == "--help" || words[0] == "-h") {
        auto text = intro + "\n\n";
        for (auto const& one : all)
            text +=
                fmt::format("  tapioca {} {:<24}{}\n", verb, fmt::format("{} {}", one.name, one.arguments), one.about);
        fmt::print("{}\n{}\n", text, outro);
        return words.empty() ? 2 : 0;
    }
    for (auto const& one : all)
        if (words[0] == one.name) return one.run({words.begin() + 1, words.end()});
    return fail("", fmt::format("{}: unknown command {}: try tapioca {} --help", verb, words[0], verb));
}

int fail_sub(std::string const& name, std::string const& what, int status)
{
    return fail(name, core::printable(what), status);
}

std::optional<int> parse_words(CLI::App& app, std::string const& name, Words const& words)
{
    app.name("tapioca " + name);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return fail_sub(name, error.what());
    }
    return {};
}

int start_ranks(std::string const& name, std::string const& program, Words const& words)
{
    auto const how = take_launch(words, false);
    if (!how) return fail_sub(name, how.error().text);
    bool const alone = how->rest.size() == words.size();
    return alone ? start_alone(program, words) : launch(program, *how);
}

}  // namespace tools
