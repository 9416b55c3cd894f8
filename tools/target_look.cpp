#include "target_look.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include "core/host.hpp"
#include "machine/tier/tier.hpp"
#include "subfile/directory_files.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace machine = tapioca::machine;
namespace subfile = tapioca::subfile;
using tapioca::Errc;

constexpr std::size_t most_hosts = 8;

std::optional<std::uint64_t> size_in(int directory, std::string const& name)
{
    struct stat file = {};
    bool const plain = ::fstatat(directory, name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode);
    return plain ? std::optional(static_cast<std::uint64_t>(file.st_size)) : std::nullopt;
}

}  // namespace

core::Result<std::string> directory_of_tier(std::string const& tier)
{
    auto const made = machine::choose_tier(tier, machine::find_tiers()).and_then(machine::make_tier);
    if (!made) return tl::unexpected(made.error());
    auto directory = (*made)->directory();
    if (directory.empty()) return core::fail(Errc::setting, tier + ": this tier has no directory");
    return directory;
}

core::Result<std::string> tier_of_environment()
{
    auto const* const tier = std::getenv("TAPIOCA_TARGET");
    if (tier && *tier) return std::string(tier);
    return core::fail(Errc::setting, "name a tier, such as ssd:/scratch, or set TAPIOCA_TARGET");
}

std::size_t SetOnTier::count(SubfilePlace where) const
{
    return static_cast<std::size_t>(
        std::count_if(subfiles.begin(), subfiles.end(), [&](auto const& one) { return one.where == where; }));
}

std::string SetOnTier::other_hosts() const
{
    std::set<std::string> hosts;
    for (auto const& one : subfiles)
        if (one.where == SubfilePlace::elsewhere)
            hosts.insert(one.host.empty() ? "hosts that are not known" : one.host);
    auto const shown = std::vector<std::string>(
        hosts.begin(), std::next(hosts.begin(), static_cast<std::ptrdiff_t>(std::min(hosts.size(), most_hosts))));
    auto const more = hosts.size() - shown.size();
    return fmt::format("{}{}", fmt::join(shown, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

core::Result<SetOnTier> look_for_subfiles(OpenSet const& set)
{
    SetOnTier found;
    bool const has_tier = !set.stub.tier.empty();
    auto const tier = has_tier ? directory_of_tier(set.stub.tier) : core::Result<std::string>("");
    if (has_tier && tier) found.place = subfile::tier_place(*tier, set.stub.identity);
    core::Descriptor const stub(::open(set.path.c_str(), O_RDONLY | O_CLOEXEC));
    core::Result<std::optional<subfile::TierPlace>> place;
    if (!found.place.empty()) place = subfile::find_tier_place(found.place, set.stub.identity, stub.get());
    if (!place) return tl::unexpected(place.error());
    core::Descriptor directory;
    if (*place) {
        auto opened = subfile::open_directory(found.place);
        if (opened) directory = std::move(*opened);
        found.here = (*place)->subfiles;
    }
    auto const& map = set.contents->map();
    for (auto const& [number, bytes] : map.subfiles()) {
        auto const name = subfile::subfile_name(number);
        SubfileWhere one{number, bytes, SubfilePlace::in_directory, 0, map.host_of(number)};
        auto size = size_in(set.opened.get(), name);
        bool const is_whole = size && *size >= bytes;
        if (!is_whole && directory)
            if (auto const here = size_in(directory.get(), name)) {
                size = here;
                one.where = SubfilePlace::here;
            }
        bool const lost = !has_tier || one.host == core::host_name();
        if (!size) one.where = lost ? SubfilePlace::missing : SubfilePlace::elsewhere;
        one.size = size.value_or(0);
        found.subfiles.push_back(std::move(one));
    }
    return found;
}

core::Status check_no_copy(OpenSet const& set, SetOnTier const& found)
{
    if (found.here.empty()) return {};
    core::Descriptor const stub(::open(set.path.c_str(), O_RDONLY | O_CLOEXEC));
    auto const place = subfile::find_tier_place(found.place, set.stub.identity, stub.get());
    if (!place || !*place) return place ? core::Status() : tl::unexpected(place.error());
    return subfile::check_original(**place, set.path, stub.get());
}

std::uint64_t bytes_in(subfile::TierPlace const& place)
{
    std::uint64_t sum = 0;
    auto const directory = subfile::open_directory(place.path);
    for (auto const number : place.subfiles)
        if (directory) sum += size_in(directory->get(), subfile::subfile_name(number)).value_or(0);
    return sum;
}

}  // namespace tools
