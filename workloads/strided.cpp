// strided: IOR's pattern of many calls, each of which writes one block in every rank's own part of the file.
#include "workloads/calls.hpp"

namespace workloads {

extern constexpr WorkloadKind strided = {
    .name = "strided",
    .about = "whole files: every call writes one block in each rank's part",
    .options = [](CLI::App& verb) { return options_of_calls(verb, "strided", true); },
    .whole_files = true};

}  // namespace workloads
