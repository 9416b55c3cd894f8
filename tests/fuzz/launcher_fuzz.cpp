// Command lines of launchers: the words stay, in their order, and the library reaches every program.
//
// The input: a byte for the launcher, then words, each ended by a line's end.
#include "fuzz/fuzz.hpp"
#include "launcher.hpp"

namespace {

using tapioca::fuzz::claim;
using namespace tools;

void claim_sound(Command const& command, Words const& words)
{
    claim(command.words == words, "the command is what was given");
    claim(!command.parts.empty() && command.launcher <= words.size(), "a command has parts");
    std::size_t before = 0;
    for (auto const& part : command.parts) {
        claim(before <= part.first && part.first <= part.end && part.end <= words.size(), "parts are in order");
        before = part.end;
        claim(part.first <= part.starts && part.starts <= part.program && part.program <= part.end,
              "a program is behind its options");
        for (auto const& option : part.options) {
            claim(part.first <= option.at && option.at <= option.last && option.last < part.end,
                  "an option's words are its part's");
            claim(option.values.size() <= 2, "an option has two values at most");
            claim(option.values.empty() || words[option.last].ends_with(option.values.back()),
                  "a word ends with the option's last value");
        }
        for (auto const at : part.preloads)
            claim(at < words.size() && words[at].starts_with("LD_PRELOAD="), "env sets LD_PRELOAD there");
    }
}

/// Every word of `less` is in `more`, in the same order, but for those that were changed in place.
bool is_longer(Words const& more, Words const& less)
{
    return more.size() >= less.size();
}

void claim_started(Command const& command, PreloadedLaunch const& start)
{
    claim(is_longer(start.words, command.words), "nothing is taken away");
    bool found = std::any_of(start.environment.begin(), start.environment.end(),
                             [](auto const& v) { return v.first == "LD_PRELOAD"; });
    for (auto const& word : start.words) found = found || word.find("/lib/t.so") != std::string::npos;
    claim(found, "the library is given to somebody");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    tapioca::fuzz::Input input(data, size);
    auto const kind = static_cast<Launcher>(input.pick(0, 5));
    Words words;
    while (!input.empty()) words.emplace_back(input.until('\n'));
    (void)launcher_by_version(words.empty() ? "" : words.back());
    auto const is_program = [](std::string const& word) { return word.starts_with("./"); };
    auto const at = behind_wrappers(words, is_program);
    claim(at <= words.size(), "a launcher is one of the words, or none");
    if (at < words.size()) (void)launcher_by_name(words[at]);
    if (words.empty()) return 0;  // the command line's own check
    auto const command = read_command(words, kind, is_program);
    if (!command) {
        claim(command.error().code != tapioca::Errc::ok && !command.error().text.empty(), "a refusal says why");
        return 0;
    }
    claim_sound(*command, words);
    claim_started(*command, with_library(*command, "/lib/t.so", "/lib/a.so", {{"TAPIOCA_STAGE", "dram"}}));
    return 0;
}
