#include "machine/cores.hpp"

namespace tapioca::machine {

cpu_set_t allowed_cores()
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &cores);
    return cores;
}

void run_on(cpu_set_t const& cores)
{
    (void)sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace tapioca::machine
