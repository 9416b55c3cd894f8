// Checks that the documents list what the tables of settings, verbs and workloads have, and link to each other. Each
// complaint is one line.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/strategies.hpp"
#include "settings/row.hpp"
#include "verb.hpp"
#include "workloads/workload.hpp"

namespace {

namespace settings = tapioca::settings;

std::string document(std::string const& name)
{
    std::ostringstream text;
    text << std::ifstream(std::string(SOURCE "/") + name).rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}

/// The text between two marks, the first of which is part of it.
std::string between(std::string const& text, std::string const& begin, std::string const& end)
{
    auto const from = text.find(begin);
    if (from == std::string::npos) return "";
    return text.substr(from, text.find(end, from + begin.size()) - from);
}

/// A man page as its reader sees it, in one line: without macros, fonts and quotes.
std::string plain(std::string const& page)
{
    auto text = std::regex_replace(page, std::regex(R"(\\f[BIR]|")"), "");
    text = std::regex_replace(text, std::regex(R"(\\-)"), "-");
    text = std::regex_replace(text, std::regex(R"((^|\n)\.[A-Z]+ ?)"), "\n");
    return std::regex_replace(text, std::regex(R"(\s+)"), " ");
}

bool has(std::string const& text, std::string const& part)
{
    return text.find(part) != std::string::npos;
}

/// The pages of Markdown that links lead to from this one, directly or not, and itself. A link to a file that is not
/// there is a failure.
std::set<std::string> reached_from(std::string const& first)
{
    std::regex const link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
    std::set<std::string> reached{first};
    std::vector<std::string> open{first};
    while (!open.empty()) {
        std::filesystem::path const page = open.back();
        open.pop_back();
        auto const text = document(page.string());
        for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
            auto const to = (page.parent_path() / at->str(1)).lexically_normal();
            EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(SOURCE) / to))
                << page.string() << " links to " << to.string() << ", which does not exist";
            if (to.extension() == ".md" && reached.insert(to.string()).second) open.push_back(to.string());
        }
    }
    return reached;
}

/// What a document says of each setting that it lists.
using Listed = std::map<std::string, std::string>;

/// The defaults in the table of docs/settings.md.
Listed defaults_of_readme()
{
    Listed listed;
    std::istringstream lines(document("docs/settings.md"));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| `TAPIOCA_")) continue;
        std::smatch cells;
        EXPECT_TRUE(std::regex_match(line, cells, std::regex(R"(\| (.*?) \| .* \|(.*) \|)"))) << line;
        auto const names = cells[1].str();
        auto const otherwise = std::regex_replace(cells[2].str(), std::regex("`|^ "), "");
        std::regex const name("TAPIOCA_[A-Z_]+");
        for (std::sregex_iterator at(names.begin(), names.end(), name), end; at != end; ++at)
            listed[at->str()] = otherwise;
    }
    return listed;
}

/// The entries of the man page.
Listed entries_of_man_page()
{
    Listed listed;
    auto const section = between(document("docs/tapioca.1"), ".SH ENVIRONMENT", "\n.SH ");
    std::regex const entry(R"(\.TP\n\.B (TAPIOCA_[A-Z_]+)\n)");
    for (std::sregex_iterator at(section.begin(), section.end(), entry), end; at != end; ++at)
        listed[at->str(1)] =
            plain(between(section.substr(static_cast<std::size_t>(at->position())), at->str(), "\n.TP"));
    return listed;
}

void expect_no_others(Listed const& listed, std::string const& where)
{
    std::set<std::string> names;
    for (auto const& row : settings::table()) names.insert(row.variable());
    for (auto const& [name, text] : listed)
        EXPECT_TRUE(names.contains(name)) << where << " lists " << name << ", which is no setting";
}

TEST(Documents, ReadmeListsEverySettingWithItsDefault)
{
    auto const listed = defaults_of_readme();
    for (auto const& row : settings::table()) {
        auto const found = listed.find(row.variable());
        if (found == listed.end())
            ADD_FAILURE() << "docs/settings.md lacks " << row.variable();
        else
            EXPECT_TRUE(found->second.starts_with(row.otherwise) && found->second.empty() == row.otherwise.empty())
                << "docs/settings.md: the default of " << row.variable() << " is '" << row.otherwise << "', not '"
                << found->second << "'";
    }
    expect_no_others(listed, "docs/settings.md");
}

TEST(Documents, ManPageListsEverySettingWithItsDefault)
{
    auto const listed = entries_of_man_page();
    for (auto const& row : settings::table()) {
        auto const found = listed.find(row.variable());
        auto const otherwise = row.otherwise.empty() ? "" : fmt::format("(default: {})", row.otherwise);
        if (found == listed.end())
            ADD_FAILURE() << "docs/tapioca.1 lacks " << row.variable();
        else
            EXPECT_TRUE(has(found->second, otherwise))
                << "docs/tapioca.1: " << row.variable() << " lacks '" << otherwise << "'";
    }
    expect_no_others(listed, "docs/tapioca.1");
}

TEST(Documents, NameTheStandardHints)
{
    for (auto const& row : settings::table())
        if (!row.standard_hint.empty()) {
            EXPECT_TRUE(has(document("docs/settings.md"), fmt::format("`{}`", row.standard_hint)))
                << "docs/settings.md lacks the hint " << row.standard_hint;
        }
}

TEST(Documents, ReadmeNamesEveryStrategy)
{
    auto const row = between(document("docs/settings.md"), "| `TAPIOCA_STRATEGY`", "\n");
    for (auto const name : tapioca::core::strategy_names())
        EXPECT_TRUE(has(row, fmt::format("`{}`", name))) << "docs/settings.md: TAPIOCA_STRATEGY lacks " << name;
}

TEST(Documents, NameNoSettingThatThereIsNot)
{
    std::set<std::string> known;
    for (auto const& row : settings::table()) known.insert(row.variable());
    auto const others =
        document("include/tapioca/tapioca.h") + document("include/tapioca/version.h") + document("CMakeLists.txt");
    std::regex const name(R"(\bTAPIOCA_[A-Z_]+\b)");
    auto pages = reached_from("README.md");
    pages.insert("docs/tapioca.1");
    for (auto const& where : pages) {
        if (where == "CHANGELOG.md") continue;  // it tells of settings that are gone
        auto const text = document(where);
        for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
            EXPECT_TRUE(known.contains(at->str()) || has(others, at->str()))
                << where << " speaks of " << at->str() << ", which is no setting";
    }
}

TEST(Documents, LeadFromTheReadmeToEveryPage)
{
    auto const reached = reached_from("README.md");
    std::filesystem::path const root(SOURCE);
    for (auto const& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
        auto const page = entry.path().lexically_relative(root).string();
        if (entry.path().extension() != ".md") continue;
        EXPECT_TRUE(reached.contains(page)) << "no link leads from README.md to " << page;
    }
    auto const readme = document("README.md");
    EXPECT_LE(std::count(readme.begin(), readme.end(), '\n'), 150);
}

TEST(Documents, NameEveryVerbAndItsOptions)
{
    auto const page = document("docs/tapioca.1");
    auto const synopsis = between(page, ".SH SYNOPSIS", ".SH DESCRIPTION");
    auto const readme = document("README.md");
    std::regex const option("--[a-z-]+");
    for (auto const* const verb : tools::verbs()) {
        EXPECT_TRUE(has(synopsis, fmt::format("\n.B tapioca {}", verb->name)))
            << "docs/tapioca.1: the synopsis lacks tapioca " << verb->name;
        EXPECT_TRUE(has(readme, fmt::format("tapioca {}", verb->name))) << "README.md lacks tapioca " << verb->name;
        for (auto const& [arguments, about] : verb->uses())
            for (std::sregex_iterator at(arguments.begin(), arguments.end(), option), end; at != end; ++at)
                EXPECT_TRUE(has(plain(page), at->str()))
                    << "docs/tapioca.1 lacks " << at->str() << " of tapioca " << verb->name;
    }
    std::regex const listed(R"(\n\.B tapioca ([a-z]+))");
    for (std::sregex_iterator at(synopsis.begin(), synopsis.end(), listed), end; at != end; ++at) {
        auto const verbs = tools::verbs();
        EXPECT_TRUE(std::any_of(verbs.begin(), verbs.end(), [&](auto const* verb) { return verb->name == at->str(1); }))
            << "docs/tapioca.1 lists tapioca " << at->str(1) << ", which is no verb";
    }
}

TEST(Documents, ManPageNamesEveryWorkload)
{
    auto const page = document("docs/tapioca.1");
    auto const measured = between(page, "\\fIWORKLOAD\\fR is one of", "\n.PP");
    auto const planned = plain(between(page, "\\fB\\-\\-workload\\fR \\fIW\\fR\n", "\n.TP"));
    for (auto const* const kind : workloads::kinds()) {
        if (kind->options) {
            EXPECT_TRUE(std::regex_search(measured, std::regex(fmt::format("\n\\.BR? .*\\b{}\\b", kind->name))))
                << "docs/tapioca.1: tapioca bench lacks " << kind->name;
        }
        if (kind->from_words) {
            EXPECT_TRUE(has(planned, fmt::format("{}:", kind->name)))
                << "docs/tapioca.1: tapioca plan --workload lacks " << kind->name;
        }
    }
}

}  // namespace
