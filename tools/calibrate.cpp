// tapioca calibrate: starts tapioca-calibrate on its own ranks.
#include "launch.hpp"
#include "verb.hpp"

namespace tools {

namespace {

std::vector<Use> calibrate_uses()
{
    return {
        {"[-n RANKS] [--mpiexec PROGRAM] [--platform NAME] [--dir DIR] [--tier TIER]... [--output FILE] [--force] "
         "[--quick]",
         "measures links, tiers and the file system of DIR, and writes a file for TAPIOCA_PLATFORM"}};
}

int run_calibrate(Words const& words)
{
    auto const how = take_launch(words, false);
    if (!how) return fail("", how.error().text);
    if (wants_help(how->rest)) return start_alone("tapioca-calibrate", {"--help"});
    return launch("tapioca-calibrate", *how);
}

}  // namespace

extern constexpr Verb calibrate = {.name = "calibrate", .uses = calibrate_uses, .run = run_calibrate};

}  // namespace tools
