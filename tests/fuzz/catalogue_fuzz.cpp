// The catalogue entry of a set on a tier: anything, or a sound one with changes whose checksum fits.
//
// The input: 'C', then changes: a place and a byte; or the file as it is.
#include <vector>

#include <sys/stat.h>

#include "fuzz/fuzz.hpp"
#include "fuzz/scratch.hpp"
#include "subfile/tier_place.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using subfile::CatalogueEntry;

constexpr subfile::SetId identity = {std::byte{0x5E}};

CatalogueEntry sound_entry()
{
    CatalogueEntry entry = {};
    std::memcpy(entry.magic, subfile::catalogue_magic, sizeof entry.magic);
    entry.version = 1;
    entry.bytes = sizeof entry;
    entry.identity = identity;
    std::strcpy(entry.host, "n1");
    std::strcpy(entry.tier, "ssd:/scratch");
    std::strcpy(entry.path, "/files/a.nc");
    return entry;
}

bool ends(std::span<char const> text)
{
    return std::find(text.begin(), text.end(), '\0') != text.end();
}

void read(std::span<std::byte const> bytes)
{
    auto const& tier = fuzz::scratch();
    auto const place = subfile::tier_place(tier.path(), identity);
    auto const name = place.substr(tier.path().size() + 1);
    (void)::mkdir(place.c_str(), 0700);
    tier.write(name + "/catalogue", bytes);
    auto const found = subfile::find_tier_place(place, identity);
    auto const all = subfile::read_catalogue(tier.path());
    claim(all && all->places.size() + all->damaged.size() == 1, "the tier has one directory of a set");
    for (auto const& reason : all->damaged) fuzz::claim_one_line(reason);
    if (!found) return fuzz::claim_one_line(found.error());
    claim(found->has_value(), "an entry is one, or it is damaged");
    auto const& entry = (*found)->entry;
    claim(bytes.size() == sizeof entry && std::memcmp(&entry, bytes.data(), sizeof entry) == 0, "it is as it was");
    claim(entry.identity == identity && all->places.size() == 1, "it is that of the set");
    claim(ends(entry.host) && ends(entry.job) && ends(entry.tier) && ends(entry.path), "its texts have an end");
    claim(entry.path[0] == '/', "it names a file");
}

void seal(CatalogueEntry& entry)
{
    entry.checksum = stage::checksum_of(&entry, offsetof(CatalogueEntry, checksum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    fuzz::Input input(data, size);
    if (size == 0 || data[0] != 'C') {
        read(std::as_bytes(std::span(data, size)));
        return 0;
    }
    (void)input.take<std::uint8_t>();
    auto entry = sound_entry();
    auto const bytes = std::as_writable_bytes(std::span(&entry, 1));
    while (!input.empty()) bytes[input.take<std::uint16_t>() % bytes.size()] = input.take<std::byte>();
    read(bytes);
    seal(entry);
    read(bytes);
    return 0;
}
