// Findings: everything that was measured, as text and as the machine of a platform file. Local.
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

/// A text for users.
std::string summary(Findings const& findings);
/// The machine with the measured figures, where there are some; `when` is a date.
tapioca::machine::Machine measured_machine(Findings const& findings, std::string const& host, std::string const& when);
/// A platform file, whose first lines say what was not measured.
std::string platform_text(Findings const& findings, std::string const& host, std::string const& when);

}  // namespace calibrate
