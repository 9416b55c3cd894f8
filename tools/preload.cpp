// How each launcher is told to pass LD_PRELOAD to its ranks, in addition to what the user passes to them.
#include <algorithm>
#include <map>
#include <set>

#include "launcher.hpp"

namespace tools {

namespace {

constexpr char const* variable = "LD_PRELOAD";

/// Changes to words, and insertions before words.
class Edits {
public:
    explicit Edits(Words const& words) : words_(words) {}

    void put_before(std::size_t at, Words const& more)
    {
        auto& list = before_[at];
        list.insert(list.end(), more.begin(), more.end());
    }
    /// Changes the last value of an option, which ends its word.
    void change_value(Option const& option, std::string const& value)
    {
        auto& word = words_[option.last];
        word = word.substr(0, word.size() - option.values.back().size()) + value;
    }
    std::string& word(std::size_t at) { return words_[at]; }

    [[nodiscard]] Words result() const
    {
        Words all;
        for (std::size_t i = 0; i <= words_.size(); ++i) {
            if (auto const more = before_.find(i); more != before_.end())
                all.insert(all.end(), more->second.begin(), more->second.end());
            if (i < words_.size()) all.push_back(words_[i]);
        }
        return all;
    }

private:
    Words words_;
    std::map<std::size_t, Words> before_;
};

std::string joined(std::string const& library, std::string const& others)
{
    if ((":" + others + ":").find(":" + library + ":") != std::string::npos) return others;
    return others.empty() ? library : library + ":" + others;
}

/// LD_PRELOAD=... of an env after the launcher would replace this library; env -i would remove it.
void edit_env(Edits& edits, LaunchedProgram const& part, std::string const& library, std::string const& preload,
              EnvironmentVariables const& settings)
{
    auto const prefix = std::string(variable) + "=";
    for (auto const at : part.preloads) edits.word(at) = prefix + joined(library, edits.word(at).substr(prefix.size()));
    if (!part.cleared) return;
    Words more;
    if (part.preloads.empty()) more.push_back(prefix + joined(library, preload));
    for (auto const& [name, value] : settings) more.push_back(name + "=" + value);
    edits.put_before(part.program, more);
}

/// Joins the values that options named in `setters` give to LD_PRELOAD, and returns the names of all variables that
/// they set.
std::set<std::string> join_options(Edits& edits, LaunchedProgram const& part, std::set<std::string> const& setters,
                                   std::string const& library, std::string const& preload)
{
    std::set<std::string> given;
    for (auto const& option : part.options) {
        if (!setters.contains(option.name) || option.values.empty()) continue;
        given.insert(option.values[0]);
        if (option.values[0] != variable) continue;
        if (option.values.size() == 2)
            edits.change_value(option, joined(library, option.values[1]));
        else
            edits.word(option.last) += "=" + joined(library, preload);
    }
    return given;
}

/// Splits at commas, except between single quotes.
Words split_list(std::string const& text)
{
    Words items(1);
    bool quoted = false;
    for (char const c : text) {
        if (c == '\'') quoted = !quoted;
        if (c == ',' && !quoted)
            items.emplace_back();
        else
            items.back() += c;
    }
    return items;
}

std::string unquoted(std::string const& text)
{
    bool const quoted = text.size() > 1 && text.front() == '\'' && text.back() == '\'';
    return quoted ? text.substr(1, text.size() - 2) : text;
}

/// srun's list of variables, with ours added. TAPIOCA_* are passed by name, because srun has them in its environment.
std::string exported(std::string const& list, std::string const& library, std::string const& preload,
                     EnvironmentVariables const& settings)
{
    Words items;
    std::set<std::string> names;
    auto value = preload;
    for (auto const& item : split_list(list)) {
        auto const name = item.substr(0, item.find('='));
        names.insert(name);
        if (name == variable && name != item) value = unquoted(item.substr(name.size() + 1));
        if (name != variable && name != "NONE" && name != "NIL" && !item.empty()) items.push_back(item);
    }
    value = joined(library, value);
    if (value.find(',') != std::string::npos) value = "'" + value + "'";
    items.push_back(std::string(variable) + "=" + value);
    for (auto const& [setting, unused] : settings)
        if (!names.contains("ALL") && !names.contains(setting)) items.push_back(setting);
    std::string text;
    for (auto const& item : items) text += (text.empty() ? "" : ",") + item;
    return text;
}

void edit_srun(Edits& edits, LaunchedProgram const& part, std::string const& by_default, std::string const& library,
               std::string const& preload, EnvironmentVariables const& settings)
{
    bool found = false;
    for (auto const& option : part.options)
        if (option.name == "export" && !option.values.empty()) {
            edits.change_value(option, exported(option.values[0], library, preload, settings));
            found = true;
        }
    if (!found) edits.put_before(part.first, {"--export=" + exported(by_default, library, preload, settings)});
}

}  // namespace

PreloadedLaunch with_library(Command const& command, std::string const& library, std::string const& ambient,
                             EnvironmentVariables const& settings)
{
    PreloadedLaunch start;
    Edits edits(command.words);
    auto const& preload = command.preload.empty() ? ambient : command.preload;
    for (auto const& part : command.parts) {
        edit_env(edits, part, library, preload, settings);
        if (command.kind == Launcher::open_mpi || command.kind == Launcher::aprun) {  // once for each program
            auto const* const option = command.kind == Launcher::open_mpi ? "-x" : "-e";
            auto const given = join_options(edits, part, {"x", "e", "environment-override"}, library, preload);
            if (!given.contains(variable))
                edits.put_before(part.first, {option, std::string(variable) + "=" + joined(library, preload)});
            for (auto const& [name, value] : settings)
                if (!given.contains(name)) edits.put_before(part.first, {option, name + "=" + value});
        }
        if (command.kind == Launcher::srun) edit_srun(edits, part, command.exported, library, preload, settings);
    }
    if (command.kind == Launcher::hydra || command.kind == Launcher::other) {
        std::set<std::string> given;
        for (auto const& part : command.parts) {
            given.merge(join_options(edits, part, {"genv"}, library, preload));
            join_options(edits, part, {"env"}, library, preload);
        }
        if (command.kind == Launcher::hydra && !given.contains(variable))
            edits.put_before(command.launcher + 1, {"-genv", variable, joined(library, preload)});
        for (auto const& [name, value] : settings)
            if (command.kind == Launcher::hydra && !given.contains(name))
                edits.put_before(command.launcher + 1, {"-genv", name, value});
    }
    if (command.kind == Launcher::none || command.kind == Launcher::other)
        start.environment.emplace_back(variable, joined(library, ambient));
    if (command.kind != Launcher::open_mpi && command.kind != Launcher::hydra && command.kind != Launcher::aprun)
        start.environment.insert(start.environment.end(), settings.begin(), settings.end());
    start.words = edits.result();
    return start;
}

}  // namespace tools
