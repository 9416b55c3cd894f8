#include "machine/cores.hpp"

#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

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

void take_short_turns()
{
    struct Attributes {  // the kernel's sched_attr, for which the C library has no name
        std::uint32_t size;
        std::uint32_t policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime_ns;
        std::uint64_t deadline_ns;
        std::uint64_t period_ns;
    } attributes = {};
    if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;
    attributes.size = sizeof attributes;
    attributes.runtime_ns = 100'000;
    (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace tapioca::machine
