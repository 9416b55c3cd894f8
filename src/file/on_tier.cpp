#include "file/on_tier.hpp"

#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/host.hpp"
#include "core/output.hpp"
#include "core/persistency.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/drain.hpp"
#include "subfile/peer_service.hpp"
#include "subfile/peers.hpp"
#include "subfile/place_owner.hpp"
#include "subfile/set_target.hpp"
#include "subfile/tier_place.hpp"

namespace tapioca::file {

namespace {

/// What a node without the tier has instead of its directory: nothing is ever found there.
constexpr char const* nowhere = "/dev/null";

core::Result<machine::TierTraits> tier_of(OpenFile const& file, std::string const& name)
{
    std::vector<machine::TierTraits> here;
    for (auto const& tier : file.around->tiers)
        if (tier.traits) here.push_back(*tier.traits);
    return machine::choose_tier(name, here);
}

/// A failure of a tier on this node.
tl::unexpected<core::Failure> here(std::string const& tier, core::Failure failure)
{
    failure.text = fmt::format("target={} on {}: {}", tier, core::host_name(), failure.text);
    return tl::unexpected(std::move(failure));
}

/// The directory of a set on this node's tier, whether or not it exists.
std::string place_of(OpenFile const& file, subfile::Stub const& stub)
{
    auto const tier = tier_of(file, stub.tier).and_then(machine::make_tier);
    return subfile::tier_place(tier ? (*tier)->directory() : nowhere, stub.identity);
}

bool is_first_of_node(OpenFile const& file)
{
    return file.session->team().node_rank() == 0;
}

/// Which place: its number, and that of its directory, since a copy has the same catalogue.
constexpr std::size_t words_of_place = sizeof(subfile::SetId) / sizeof(std::uint64_t) + 1;

/// What a node has, as numbers for the others: which place, and the subfiles there.
core::Result<std::vector<std::uint64_t>> numbers_here(OpenFile& file)
{
    if (!is_first_of_node(file)) return std::vector<std::uint64_t>();
    auto* const stub = file.target();
    if (!stub) return tl::unexpected(file.target_status().error());
    auto const place = subfile::find_tier_place(file.set->on_tier, file.set->stub.identity, stub->descriptor());
    if (!place) return tl::unexpected(place.error());
    if (!*place) return std::vector<std::uint64_t>();
    auto const writable =
        file.mode == Mode::read ? core::Status() : subfile::check_original(**place, file.place, stub->descriptor());
    if (!writable) return tl::unexpected(writable.error());
    subfile::note_moved(**place, file.place);
    std::vector<std::uint64_t> numbers(words_of_place);
    std::memcpy(numbers.data(), (*place)->entry.place.data(), sizeof(subfile::SetId));
    numbers[words_of_place - 1] = (*place)->inode;
    numbers.insert(numbers.end(), (*place)->subfiles.begin(), (*place)->subfiles.end());
    return numbers;
}

/// Whether two nodes look at the same directory, as nodes do that only pretend to be several.
bool same_place(std::vector<std::uint64_t> const& a, std::vector<std::uint64_t> const& b)
{
    if (a.size() < words_of_place || b.size() < words_of_place) return false;
    return std::equal(a.begin(), a.begin() + words_of_place, b.begin());
}

/// Collective.
[[noreturn]] void refuse_copy(OpenFile& file, std::uint32_t number, std::size_t one, std::size_t other)
{
    // Nodes that only pretend to be several have one host, so their numbers are told as well.
    auto const hosts = file.session->team().gather_texts(core::host_name());
    file.raise("open",
               {Errc::io, 0, -1,
                fmt::format("two nodes, {} ({}) and {} ({}), have a {} of this file on their tier, {}: remove "
                            "the one that is a copy",
                            one, hosts[one], other, hosts[other], subfile::subfile_name(number), file.set->stub.tier)});
}

}  // namespace

void remove_from_node(subfile::Stub const& stub)
{
    if (stub.tier.empty()) return;
    auto const tier = machine::choose_tier(stub.tier, machine::find_tiers()).and_then(machine::make_tier);
    if (tier) subfile::remove_orphans(subfile::tier_place((*tier)->directory(), stub.identity), stub.identity);
}

core::Status choose_place(OpenFile& file)
{
    auto& set = *file.set;
    if (!set.has_tier()) return {};
    auto const& tier = set.stub.tier;
    auto const advise = [&](core::Failure failure) { return here(tier, std::move(failure)); };
    auto const traits = tier_of(file, tier);
    if (!traits) return advise(traits.error());
    auto const wish = file.settings.options.persistency.value_or(Persistency::job);
    if (traits->persistency < wish)
        return advise({Errc::setting, 0, -1,
                       fmt::format("this tier has persistency {}, and {} is asked for: name a directory, as in "
                                   "ssd:/dir, or ask for less with TAPIOCA_PERSISTENCY",
                                   core::name(traits->persistency), core::name(wish))});
    auto const made = machine::make_tier(*traits);
    if (!made) return advise(made.error());
    set.on_tier = subfile::tier_place((*made)->directory(), set.stub.identity);
    return {};
}

void find_place(OpenFile& file)
{
    if (file.set->has_tier()) file.set->on_tier = place_of(file, file.set->stub);
}

core::Status make_place(OpenFile& file)
{
    auto* const target = file.target();
    auto const tier = tier_of(file, file.set->stub.tier).and_then(machine::make_tier);
    if (!tier) return here(file.set->stub.tier, tier.error());
    if (!target) return file.target_status();
    return subfile::make_tier_place(file.set->on_tier, file.set->stub.identity, {file.set->stub.tier, file.place},
                                    target->descriptor());
}

void make_places(OpenFile& file)
{
    auto const status = is_first_of_node(file) ? make_place(file) : core::Status();
    auto const agreed = file.session->agreement().agree(status);
    if (!agreed) unmake_places(file);
    file.raise_if("open", agreed);
}

void unmake_places(OpenFile& file)
{
    bool const is_mine = file.set && file.set->has_tier() && file.set->made_now && is_first_of_node(file);
    if (is_mine) (void)subfile::remove_tier_place(file.set->on_tier);
    file.unmake();
}

void remove_begun(OpenFile& file)
{
    auto const& set = *file.set;
    if (!set.adds || !is_first_of_node(file)) return;
    auto* const stub = file.target();
    if (!stub) return;
    auto const place = subfile::find_tier_place(set.on_tier, set.stub.identity, stub->descriptor());
    if (!place || !*place || !subfile::check_original(**place, file.place, stub->descriptor())) return;
    auto numbers = (*place)->subfiles;
    std::erase_if(numbers, [&](std::uint32_t number) { return number < set.first_subfile; });
    if (!numbers.empty()) (void)subfile::remove_from_tier(set.on_tier, numbers, subfile::EmptyPlace::kept);
}

void find_subfiles(OpenFile& file)
{
    auto& node_of = file.set->node_of;
    auto const own = file.set->adds ? node_of.lower_bound(file.set->first_subfile) : node_of.end();
    node_of.erase(node_of.begin(), own);  // where this opening writes is known
    auto const mine = numbers_here(file);
    file.raise_if("open", file.session->agreement().agree(mine ? core::Status() : tl::unexpected(mine.error())));
    auto const all = file.session->team().gather_nodes(*mine);
    for (std::size_t node = 0; node < all.size(); ++node)
        for (std::size_t i = words_of_place; i < all[node].size(); ++i) {
            auto const number = static_cast<std::uint32_t>(all[node][i]);
            auto const before = node_of.try_emplace(number, static_cast<int>(node)).first->second;
            auto const& other = all[static_cast<std::size_t>(before)];
            if (!same_place(other, all[node])) refuse_copy(file, number, before, node);
        }
    tell_peers(file);
}

void begin_service(OpenFile& file)
{
    auto& set = *file.set;
    if (!set.peers) return;
    auto const& team = file.session->team();
    subfile::PeerAddress mine;
    if (is_first_of_node(file)) {
        set.service =
            std::make_shared<subfile::PeerService>(file.set_directory(), set.stub.identity, file.access(), set.on_tier);
        (void)set.service->launch(file.session->core_set());
        mine = set.service->address();
    }
    std::vector<subfile::PeerAddress> services;
    for (auto const& text : team.gather_texts(mine.text())) services.push_back(subfile::PeerAddress::of(text));
    set.peers->meet(std::move(services), team.my_node(),
                    file.settings.options.timeout.value_or(settings::default_timeout));
}

void end_service(OpenFile& file)
{
    if (!file.set) return;
    file.set->service.reset();
    file.set->peers.reset();
}

void tell_peers(OpenFile& file)
{
    if (file.set->peers) file.set->peers->place({file.set->node_of, file.set->first_subfile, file.set->numbers});
}

void remove_replaced(OpenFile const& file)
{
    if (file.replaced && is_first_of_node(file))
        subfile::remove_orphans(place_of(file, *file.replaced), file.replaced->identity);
}

void leave_drained(OpenFile& file)
{
    auto* const target = dynamic_cast<subfile::SetTarget*>(file.target());
    if (target && !file.has_independent_accesses) target->leave_drained();
}

void remove_empty_place(OpenFile const& file)
{
    if (is_first_of_node(file)) (void)subfile::remove_from_tier(file.set->on_tier, {});
}

namespace {

/// What this node has of earlier openings; of them, the subfiles that have data of the set, and the others.
struct EarlierSubfiles {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> used;  ///< numbers and bytes
    std::vector<std::uint32_t> unused;
};

core::Result<EarlierSubfiles> find_earlier(OpenFile const& file)
{
    auto const& set = *file.set;
    EarlierSubfiles earlier;
    if (!is_first_of_node(file)) return earlier;
    auto const directory = subfile::open_directory(file.set_directory());
    if (!directory) return tl::unexpected(directory.error());
    auto const place = subfile::find_tier_place(set.on_tier, set.stub.identity);
    if (!place) return tl::unexpected(place.error());
    subfile::SetContents contents(directory->get(), set.stub.identity);
    if (auto status = contents.refresh(); !status) return tl::unexpected(status.error());
    if (!*place || !contents.has_index()) return earlier;
    // From here on the numbers may be those of the next job, which the index does not have yet.
    auto const end = contents.head().subfiles;
    for (auto const number : (*place)->subfiles) {
        if (number >= end) continue;
        auto const known = contents.map().subfiles().find(number);
        if (known == contents.map().subfiles().end())
            earlier.unused.push_back(number);
        else
            earlier.used.emplace_back(*known);
    }
    return earlier;
}

}  // namespace

void remove_unused(OpenFile const& file)
{
    if (!is_first_of_node(file)) return;
    auto const earlier = find_earlier(file);
    if (earlier) (void)subfile::remove_from_tier(file.set->on_tier, earlier->unused);
}

core::Result<std::vector<subfile::SealedDrainer::Sealed>> subfiles_to_drain(OpenFile const& file)
{
    auto const earlier = find_earlier(file);
    if (!earlier) return tl::unexpected(earlier.error());
    std::vector<subfile::SealedDrainer::Sealed> subfiles;
    for (auto const& [number, bytes] : earlier->used)
        subfiles.push_back({number, bytes, subfile::Drain::Writer::ended});
    return subfiles;
}

core::Status check_drained(OpenFile const& file)
{
    auto const directory = subfile::open_directory(file.set_directory());
    if (!directory) return tl::unexpected(directory.error());
    subfile::SetContents contents(directory->get(), file.set->stub.identity);
    if (auto status = contents.refresh(); !status) return status;
    bool const closed = !file.set->lock;
    if (closed && contents.head().generation != file.set->generation) return {};  // by now it is another job's
    std::vector<std::uint32_t> left;
    for (auto const& [number, bytes] : contents.map().subfiles()) {
        // When this opening has let go of the set, those that the index does not have yet are the next job's.
        bool const mine = number >= file.set->first_subfile && number < contents.head().subfiles;
        if (bytes == 0 || (closed && !mine)) continue;
        struct stat status = {};
        auto const name = subfile::subfile_name(number);
        if (::fstatat(directory->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) left.push_back(number);
    }
    if (left.empty()) return {};
    auto const host = contents.map().host_of(left[0]);
    return core::fail(
        Errc::not_found,
        fmt::format(
            "{} of the subfiles {} not in the file system: the first, {}{}{}, is on no node of this job, or another "
            "process drains it: `tapioca target drain {}` on every node brings there what the nodes have",
            left.size(), left.size() == 1 ? "is" : "are", subfile::subfile_name(left[0]), host.empty() ? "" : " of ",
            host, core::shell_word(file.path)));
}

}  // namespace tapioca::file
