// dram: ordinary memory, wherever the system allocates it.
#include <algorithm>

#include "machine/tier/free.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

std::uint64_t dram_free_bytes(TierTraits const& /*tier*/)
{
    return std::min({available_memory(), cgroup_free_bytes(), directory_free_bytes(shm_directory)});
}

class Dram final : public Tier {
public:
    explicit Dram(TierTraits traits) : Tier(std::move(traits)) {}
    [[nodiscard]] core::Result<TierMapping> create(std::uint64_t bytes, Pages pages) const override
    {
        return create_file({shm_directory, bytes, dram_free_bytes(traits_), traits_.name, shm_advice, pages, {}});
    }
    [[nodiscard]] core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                   Pages pages) const override
    {
        return attach_file(name, bytes, pages);
    }
};

core::Result<std::unique_ptr<Tier>> make_dram(TierTraits const& traits)
{
    return std::make_unique<Dram>(traits);
}

}  // namespace

TierKind const dram_tier = {
    .name = "dram",
    .help = "ordinary memory",
    .ordinary = true,
    .latency_s = 100e-9,
    .write_bandwidth = 10e9,
    .read_bandwidth = 10e9,
    .free_bytes = dram_free_bytes,
    .make = make_dram,
};

}  // namespace tapioca::machine
