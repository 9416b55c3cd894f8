#include "machine/tier/hwloc.hpp"

namespace tapioca::machine {

Hwloc load_hwloc()
{
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return nullptr;
    Hwloc topology(made);
    hwloc_topology_set_all_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(made) != 0) return nullptr;
    return topology;
}

}  // namespace tapioca::machine
