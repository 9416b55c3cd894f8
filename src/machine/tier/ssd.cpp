// ssd: a file in a directory of the node, as large as its file system permits.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/tier/free.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

std::uint64_t ssd_free_bytes(TierTraits const& tier)
{
    return directory_free_bytes(tier.place);
}

class Ssd final : public Tier {
public:
    explicit Ssd(TierTraits traits) : Tier(std::move(traits)) {}
    [[nodiscard]] core::Result<TierMapping> create(std::uint64_t bytes, Pages /*pages*/) const override
    {
        return create_file({traits_.place,
                            bytes,
                            ssd_free_bytes(traits_),
                            "ssd",
                            "make room there, lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY, or name another directory "
                            "with TAPIOCA_AGGRTIER=ssd:/dir",
                            Pages::when_touched,
                            {}});
    }
    [[nodiscard]] core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                   Pages /*pages*/) const override
    {
        return attach_file(name, bytes, Pages::when_touched);
    }
    [[nodiscard]] std::string directory() const override { return traits_.place; }
};

core::Result<std::unique_ptr<Tier>> make_ssd(TierTraits const& traits)
{
    auto const refuse = [&](int error, char const* what_to_do) {
        auto failed = core::fail_errno(error, "ssd tier: " + traits.place);
        failed.value().text += fmt::format(": {} or name another directory, as in ssd:/dir", what_to_do);
        return failed;
    };
    struct stat info = {};
    if (::stat(traits.place.c_str(), &info) != 0) return refuse(errno, "create it");
    if (!S_ISDIR(info.st_mode)) return refuse(ENOTDIR, "remove it");
    if (::access(traits.place.c_str(), W_OK | X_OK) != 0) return refuse(errno, "make it writable");
    return std::make_unique<Ssd>(traits);
}

}  // namespace

extern TierKind const ssd_tier;
TierKind const ssd_tier = {
    .name = "ssd",
    .help = "files in a directory, mapped",
    .place = "an absolute directory such as /scratch",
    .device = true,
    .persistency = Persistency::job,
    .latency_s = 100e-6,
    .write_bandwidth = 1e9,
    .read_bandwidth = 1e9,
    .free_bytes = ssd_free_bytes,
    .make = make_ssd,
    .is_place = [](std::string const& text) { return text.starts_with('/'); },
    .sample = [](std::string const& scratch) { return scratch; },
};

}  // namespace tapioca::machine
