// Compares what was seen of a step on the two files with what the standard wants.
#pragma once

#include "fuzz_run.hpp"

namespace fuzz {

enum class What { Class, Count, Elements, Position, Shared, Values, Buffer, Unread, Handler, File, Holes };
char const* name_of(What what);

/// Something that is not as it ought to be.
struct Finding {
    What what;
    bool alone_right;
    bool through_right;
    bool equal;  ///< it is wrong in the same way on both files
};

/// What one rank saw. `handlers`: the files have error handlers of their own. Local.
std::vector<Finding> judge(Step const& step, Part const& part, Observed const& alone, Observed const& through,
                           bool handlers);

struct Contents {
    bool exists = false;
    Bytes bytes;
    bool operator==(Contents const&) const = default;
};
Contents read_file(std::string const& path);
/// Local. Ends the program where it cannot.
void write_file(std::string const& path, Contents const& contents);

/// What became of the files. Where a file is wrong, `said` tells where.
std::vector<Finding> judge_files(Step const& step, Contents alone, Contents through, std::string& said);

}  // namespace fuzz
