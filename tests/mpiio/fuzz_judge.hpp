// Compares the observed results of a step on the two files with those that the standard requires.
#pragma once

#include "fuzz_run.hpp"

namespace fuzz {

enum class What { Class, Count, Elements, Position, Shared, Values, Buffer, Unread, Handler, File, Holes };
char const* name_of(What what);

/// A deviation from the required result.
struct Finding {
    What what;
    bool alone_right;
    bool through_right;
    bool equal;  ///< it is wrong in the same way on both files
};

/// Judges what one rank observed. `handlers`: the files have their own error handlers. Local.
std::vector<Finding> judge(Step const& step, Part const& part, Observed const& alone, Observed const& through,
                           bool handlers);

struct Contents {
    bool exists = false;
    Bytes bytes;
    bool operator==(Contents const&) const = default;
};
Contents read_file(std::string const& path);
/// Local. Ends the program on failure.
void write_file(std::string const& path, Contents const& contents);

/// Judges the contents of the files. If a file is wrong, `said` describes where.
std::vector<Finding> judge_files(Step const& step, Contents alone, Contents through, std::string& said);

}  // namespace fuzz
