// hwloc's view of this node, without devices. Loading takes tens of milliseconds.
#pragma once

#include <memory>

#include <hwloc.h>

namespace tapioca::machine {

struct HwlocDeleter {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Hwloc = std::unique_ptr<hwloc_topology, HwlocDeleter>;

/// Packages, cores and NUMA nodes; honours HWLOC_XMLFILE and similar variables. Null, with errno, if it fails.
Hwloc load_hwloc();

}  // namespace tapioca::machine
