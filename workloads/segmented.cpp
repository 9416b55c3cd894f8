// segmented: IOR's pattern of many calls, each of which writes all ranks' blocks next to each other.
#include "workloads/calls.hpp"

namespace workloads {

extern constexpr WorkloadKind segmented = {
    .name = "segmented",
    .about = "whole files: every call writes all ranks' blocks in a row",
    .options = [](CLI::App& verb) { return options_of_calls(verb, "segmented", false); },
    .whole_files = true};

}  // namespace workloads
