// What file systems report about themselves: layouts of Lustre and CephFS, the kernel's list of mounts.
#include "fuzz/fuzz.hpp"
#include "machine/storage.hpp"
#include "machine/stripes.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    using namespace tapioca;
    using fuzz::claim;
    auto const claim_sound = [](machine::Stripes const& stripes) {
        claim(stripes.bytes >= 0 && stripes.count >= 0, "stripes are counted from 0 on");
        auto storage = machine::storage_profile("lustre");
        machine::enter(storage, stripes);
        claim(storage.block_bytes > 0 && storage.stripe_bytes >= 0, "a block stays a block");
    };
    auto const bytes = std::as_bytes(std::span(data, size));
    if (auto const stripes = machine::parse_lustre_layout(bytes)) claim_sound(*stripes);

    fuzz::Input input(data, size);
    machine::Stripes const wanted{input.number(), static_cast<int>(input.number() % (1 << 30))};
    if (auto const layout = machine::lustre_layout(wanted)) {
        auto const back = machine::parse_lustre_layout(*layout);
        if (wanted.bytes > 0 && wanted.count > 0) claim(back && *back == wanted, "Lustre is asked for what is wanted");
    } else {
        fuzz::claim_one_line(layout.error());
    }
    auto const unit = input.number(), count = input.number(), object = input.number();
    if (auto const stripes = machine::ceph_stripes(unit, count, object)) claim_sound(*stripes);
    auto const name = machine::fuse_name(input.all(), 0, static_cast<unsigned>(wanted.count & 0xFF));
    claim(!name.empty(), "what serves a file has a name");
    return 0;
}
