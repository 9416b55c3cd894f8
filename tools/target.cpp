// tapioca target: lists, drains and drops what files have on the tiers of this node.
#include <array>
#include <exception>

#include "target_verbs.hpp"

namespace tools {

namespace {

constexpr std::array<SubVerb, 3> target_verbs = {
    {{"list", "[TIER|FILE...]",
      "lists the files with data on this node's tiers [TAPIOCA_TARGET], or where a file's subfiles are", list_targets},
     {"drain", "FILE|--all TIER", "brings what this node has to the file system; run it on every node", drain_target},
     {"drop", "FILE|--gone TIER", "removes what this node has", drop_target}}};

std::vector<Use> target_uses()
{
    return {
        {"list|drain|drop [OPTIONS] FILE",
         "files whose data lies on a tier of the nodes (TAPIOCA_TARGET): where it is, and how to bring it to the file "
         "system"}};
}

int run_target(Words const& words)
try {
    return run_sub_verb("target", target_verbs, words,
                        "tapioca target: files whose data lies on a tier of the nodes, such as ssd:/scratch. Under the "
                        "name of such a file\nthere is a small text, the stub. Each command sees the node on which it "
                        "runs: start it on each of them, such as\nsrun --ntasks-per-node=1 tapioca target drain FILE",
                        "Each command has a --help.");
} catch (std::exception const& error) {  // such as a lack of memory
    return fail_sub("target", error.what(), 1);
}

}  // namespace

extern constexpr Verb target = {.name = "target", .uses = target_uses, .run = run_target};

}  // namespace tools
