// Findings: everything that was measured, told as text and as the machine of a platform file. Local.
#pragma once

#include <string>
#include <vector>

#include "engine/discovered_machine.hpp"
#include "links.hpp"
#include "target.hpp"
#include "tiers.hpp"

namespace calibrate {

struct Findings {
    tapioca::engine::DiscoveredMachine around;
    int ranks = 1;
    std::string directory;
    std::vector<LinkFigures> links;  ///< one per level
    std::vector<TierFigures> tiers;  ///< one per tier of the machine
    TargetFigures target;
};

/// For people.
std::string summary(Findings const& findings);
/// The machine with figures that are measured, where they were; `when` is a date.
tapioca::machine::Machine measured_machine(Findings const& findings, std::string const& host, std::string const& when);
/// A platform file, with what is not measured in its first lines.
std::string platform_text(Findings const& findings, std::string const& host, std::string const& when);

}  // namespace calibrate
