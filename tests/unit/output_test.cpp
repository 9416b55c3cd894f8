// Names that others chose, as they are printed, and as a shell takes them.
#include "core/output.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

namespace tapioca::core {
namespace {

TEST(Printable, EscapesControlCharactersAndNothingElse)
{
    EXPECT_EQ(printable("a b'\\\"$größe"), "a b'\\\"$größe");
    EXPECT_EQ(printable("\x1b[31m\nred\a\x7f"), "\\x1b[31m\\x0ared\\x07\\x7f");
    EXPECT_EQ(printable("\xc2\x85 \xc2\xa0 \xc2"), "\\x85 \xc2\xa0 \xc2");
}

TEST(ShellWord, LeavesNamesThatNeedNoQuotesAlone)
{
    for (auto const* const name :
         {"a", "/scratch/run-5/out_2.dat", "ufs:x=1,y+2@3%4", "../größe.h5", "./-x", "TARGET.tapioca.rank0.meta"})
        EXPECT_EQ(shell_word(name), name);
}

TEST(ShellWord, QuotesTheOthers)
{
    EXPECT_EQ(shell_word("a b"), "'a b'");
    EXPECT_EQ(shell_word("$HOME; rm *"), "'$HOME; rm *'");
    EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
    EXPECT_EQ(shell_word("a\\b"), R"('a\b')");
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("-o"), "./-o");
    EXPECT_EQ(shell_word("--force it"), "'./--force it'");
    EXPECT_EQ(shell_word("it's\n1\\2"), R"($'it\'s\0121\\2')");
    EXPECT_EQ(shell_word("\xc2\x85"), R"($'\302\205')");
}

/// The words of a command line, each in a line of its own, as the shell of most users has them.
std::string words_of(std::string const& line)
{
    auto const script = "printf '%s|' " + line;
    ::setenv("SCRIPT", script.c_str(), 1);
    auto* const shell = ::popen("exec bash -c \"$SCRIPT\"", "r");
    std::string words;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) words += static_cast<char>(c);
    EXPECT_EQ(::pclose(shell), 0) << line;
    return words;
}

TEST(ShellWord, IsOneWordToAShellAndPrintable)
{
    std::string every;
    for (int c = 1; c < 256; ++c) every += static_cast<char>(c);
    std::string visible;
    for (int c = ' '; c < 0x7f; ++c) visible += static_cast<char>(c);
    std::array<std::string, 12> const names = {
        every,    visible, "a  b", "$(id)`id`", "a;b&c|d", "~", "#a", "{a,b}", "*?[a]!x", "\\", "it's \"\x1b[31m\"\n1",
        "größe\t"};
    for (auto const& name : names) {
        EXPECT_EQ(words_of(shell_word(name)), name + "|");
        EXPECT_EQ(printable(shell_word(name)), shell_word(name));
    }
    EXPECT_EQ(words_of(shell_word("-n") + " " + shell_word("")), "./-n||");
}

}  // namespace
}  // namespace tapioca::core
