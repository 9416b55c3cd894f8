// Verb: a row of the table of what the tapioca command can do. To add one, write a .cpp that defines it, and a row of
// rows.inc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

using Words = std::vector<std::string>;

/// One way to use a verb, for the help.
struct Use {
    std::string arguments;  ///< what follows the verb
    std::string about;      ///< what it does; broken into lines when it is printed
};

struct Verb {
    std::string_view name;
    std::vector<Use> (*uses)();
    /// `words` are the arguments after the verb. Returns the exit status.
    int (*run)(Words const& words);
    std::string_view examples = {};  ///< lines for the end of the help
};

/// All verbs, in the order of the help.
std::span<Verb const* const> verbs();

/// What `tapioca --help` prints.
std::string usage();
/// The command: `words` are its arguments. Returns the exit status.
int command(Words const& words);

/// Prints what is wrong, after the name of the verb if that is not empty, and returns the exit status.
int fail(std::string_view verb, std::string const& what, int status = 2);
/// Whether help is requested.
bool wants_help(Words const& words);
/// Wraps a text such as `about` into lines of at most 106 characters that begin with `indent` blanks; breaks before
/// `at`.
std::string wrapped(std::string_view text, std::size_t indent, std::string_view at = " ");

}  // namespace tools
