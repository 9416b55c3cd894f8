// What `tapioca info` shows: gathered once, shown as text or as JSON.
#pragma once

#include <string>

#include "machine/machine.hpp"

namespace tools {

struct Host {
    std::string name;
    int sockets = 0, cores = 0, numa_nodes = 0;
    double memory_bytes = 0;
};

struct Facts {
    Host host;
    std::optional<tapioca::machine::Machine> platform;
    std::vector<tapioca::machine::TierTraits> tiers;  ///< the platform's, or this host's
    bool platform_tiers = false;
    std::string directory;  ///< empty: `storage` is the platform's
    tapioca::machine::Storage storage;
};

std::string to_text(Facts const& facts);
std::string to_json(Facts const& facts);

}  // namespace tools
