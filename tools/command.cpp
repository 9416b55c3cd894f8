#include <algorithm>

#include <fmt/core.h>

#include <tapioca/version.h>

#include "core/units.hpp"
#include "launch.hpp"
#include "verb.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;

constexpr std::size_t width = 106;

std::string unknown(std::string const& word)
{
    std::vector<std::string_view> names;
    for (auto const* const verb : verbs()) names.push_back(verb->name);
    auto const nearest = core::nearest(word, names);
    bool const near = 2 * core::edit_distance(word, nearest) <= nearest.size();
    return near ? fmt::format("unknown command {}: did you mean {}? Try tapioca --help", word, nearest)
                : fmt::format("unknown command {}: try tapioca --help", word);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::string_view at)
{
    std::string const margin(indent, ' ');
    std::string lines;
    while (indent + text.size() > width) {
        auto const end = text.rfind(at, width - indent);
        if (end == std::string_view::npos || end == 0) break;
        lines += margin + std::string(text.substr(0, end)) + '\n';
        text.remove_prefix(end + 1);
    }
    return lines + margin + std::string(text) + '\n';
}

std::string usage()
{
    std::string text = "tapioca " TAPIOCA_VERSION_STRING ": collective parallel I/O\n\n";
    std::string examples;
    for (auto const* const verb : verbs()) {
        for (auto const& [arguments, about] : verb->uses()) {
            auto const name = fmt::format("  tapioca {} ", verb->name);
            auto lines = wrapped(arguments, name.size(), " [");
            text += lines.replace(0, name.size(), name) + wrapped(about, 6);
        }
        examples += verb->examples;
    }
    return text + "  tapioca --version\n\nExamples\n" + examples;
}

int fail(std::string_view verb, std::string const& what, int status)
{
    fmt::print(stderr, "tapioca{}{}: {}\n", verb.empty() ? "" : " ", verb, what);
    return status;
}

bool wants_help(Words const& words)
{
    return std::any_of(words.begin(), words.end(), [](auto const& word) { return word == "--help" || word == "-h"; });
}

int command(Words const& words)
{
    if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
        fmt::print("{}", usage());
        return words.empty() ? 2 : 0;
    }
    if (words[0] == "--version") {
        fmt::print("tapioca {} for {}\n", TAPIOCA_VERSION_STRING, mpi_name());
        return 0;
    }
    for (auto const* const verb : verbs())
        if (verb->name == words[0]) return verb->run({words.begin() + 1, words.end()});
    return fail("", unknown(words[0]));
}

}  // namespace tools
