// tape: a tier that the library does not have. Its buffers are files in a directory.
#include "machine/tier/free.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

std::uint64_t tape_free_bytes(TierTraits const& tier)
{
    return directory_free_bytes(tier.place);
}

class Tape final : public Tier {
public:
    explicit Tape(TierTraits traits) : Tier(std::move(traits)) {}
    [[nodiscard]] core::Result<TierMapping> create(std::uint64_t bytes, Pages /*pages*/) const override
    {
        return create_file(
            {traits_.place, bytes, tape_free_bytes(traits_), traits_.name, shm_advice, Pages::when_touched, {}});
    }
    [[nodiscard]] core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                   Pages /*pages*/) const override
    {
        return attach_file(name, bytes, Pages::when_touched);
    }
    [[nodiscard]] std::string directory() const override { return traits_.place; }
};

core::Result<std::unique_ptr<Tier>> make_tape(TierTraits const& traits)
{
    return std::make_unique<Tape>(traits);
}

constexpr std::string_view described_as[] = {"reel"};

}  // namespace

extern TierKind const tape_tier;
TierKind const tape_tier = {
    .name = "tape",
    .help = "one reel after the other",
    .place = "the directory of a robot",
    .place_prefix = "robot ",
    .described_as = described_as,
    .device = true,
    .persistency = Persistency::permanent,
    .latency_s = 10,
    .write_bandwidth = 3e8,
    .read_bandwidth = 3e8,
    .free_bytes = tape_free_bytes,
    .make = make_tape,
    .is_place = [](std::string const& text) { return text.starts_with('/'); },
    .sample = [](std::string const& scratch) { return scratch; },
};

}  // namespace tapioca::machine
