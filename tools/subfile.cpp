// tapioca subfile: lists, checks, joins, makes and recovers files that consist of subfiles.
#include <array>
#include <exception>

#include "subfile_verbs.hpp"

namespace tools {

namespace {

constexpr std::array<SubVerb, 5> subfile_verbs = {
    {{"list", "[PATH...]", "lists the sets of subfiles in directories, or of files [.]", list_sets},
     {"verify", "PATH", "checks that everything is there; prints a line for each problem, and then returns 1",
      verify_set},
     {"join", "PATH", "makes one plain file of a set; alone, or under mpiexec with many processes", join_set},
     {"split", "PATH --subfiles N", "makes a set of a plain file", split_file},
     {"recover", "PATH", "completes a set whose job has ended without closing the file", recover_subfiles}}};

std::vector<Use> subfile_uses()
{
    return {use_of(subfile_verbs,
                   "files that consist of subfiles (TAPIOCA_SUBFILE): what there is, and how to make plain files of "
                   "them")};
}

int run_subfile(Words const& words)
try {
    return run_sub_verb("subfile", subfile_verbs, words,
                        "tapioca subfile: files that consist of subfiles. Under the name of such a file there is a "
                        "small text, the stub;\nits data is in the directory PATH.subfiles beside it.",
                        "PATH is the file. Each command has a --help.");
} catch (std::exception const& error) {  // such as a lack of memory
    return fail_sub("subfile", error.what(), 1);
}

}  // namespace

int join_set(Words const& words)
{
    return start_ranks("subfile join", "tapioca-join", words);
}

extern constexpr Verb subfile = {.name = "subfile", .uses = subfile_uses, .run = run_subfile};

}  // namespace tools
