#include "file/find_set.hpp"

#include <fmt/core.h>

#include "file/groups.hpp"
#include "file/on_tier.hpp"
#include "stage/log_files.hpp"
#include "subfile/directory_files.hpp"

namespace tapioca::file {

namespace {

/// Which ranks share a subfile, if a new file is to be a set: what the setting `subfile` says or, with a target alone,
/// the ranks of a node.
std::optional<std::string> wished_layout(OpenFile const& file)
{
    auto const& options = file.settings.options;
    if (file.within_set) return std::nullopt;
    auto const layout = options.subfile.value_or("off");
    if (layout != "off") return layout;
    return options.target ? std::optional<std::string>("node") : std::nullopt;
}

/// Whether the groups of a set can be formed on this machine.
core::Status check_groups(OpenFile const& file)
{
    auto const& team = file.session->team();
    auto const groups = groups_of(file.set->layout, team, *file.around);
    if (!groups) return tl::unexpected(groups.error());
    if (file.set->has_tier() && !within_nodes(*groups, team))
        return core::fail(Errc::setting, fmt::format("subfile={}, target={}: a subfile on a tier lies on one node, and "
                                                     "a group would have ranks of several: choose node, or files:N "
                                                     "with a multiple of the number of nodes",
                                                     file.set->layout, file.set->stub.tier));
    return {};
}

}  // namespace

core::Status find_set(OpenFile& file, int fd)
{
    using FoundStub = core::Result<std::optional<subfile::Stub>>;
    bool const may_be_stub = file.first.identity.bytes == subfile::stub_bytes;
    auto const stub = may_be_stub ? subfile::read_stub(fd) : FoundStub(std::nullopt);
    auto const& options = file.settings.options;
    auto const tier = file.within_set ? std::string() : options.target.value_or("");
    auto const layout = wished_layout(file);
    bool const empty = file.may_become_set && file.first.identity.bytes == 0;
    file.replaced.reset();
    if (file.mode == Mode::create || (empty && layout)) {  // what there is now will be removed
        if (stub && *stub && !(*stub)->tier.empty()) file.replaced = **stub;
        if (!layout) return {};
        if (tier.size() > subfile::longest_tier)
            return core::fail(Errc::setting, fmt::format("target={}: the name is too long", tier));
        file.set.emplace(OpenFile::Set{
            {stage::new_identity(), subfile::choose_directory(file.place, fd), tier}, true, true, 1, 0, 0, *layout});
        auto const placed = choose_place(file);
        return placed ? check_groups(file) : placed;
    }
    if (!stub) return tl::unexpected(stub.error());
    if (!*stub)
        return file.within_set ? core::Status() : subfile::check_remains(file.place, fd, file.first.identity.bytes);
    if (auto status = subfile::check_usable(file.place, **stub); !status) return status;
    auto const own = file.mode == Mode::read ? core::Status() : subfile::check_own_directory(file.place, **stub, fd);
    if (!own) return own;
    file.set.emplace(OpenFile::Set{**stub});
    find_place(file);
    if (file.mode == Mode::read) return {};
    auto const directory = subfile::open_directory(file.set_directory());
    if (!directory) return tl::unexpected(directory.error());
    subfile::SetContents contents(directory->get(), (*stub)->identity);
    if (auto status = contents.refresh(); !status) return status;
    auto& set = *file.set;
    bool const wished = layout && options.subfile.value_or("off") != "off";
    set.layout = wished ? *layout : contents.head().layout;
    if (auto status = check_groups(file); !status) {
        if (wished) return status;
        set.layout = "node";  // the machine, or the job, is another one
    }
    set.generation = contents.head().generation + 1;
    set.epoch = contents.map().epoch();
    set.first_subfile = contents.next_subfile();
    // Whoever has the lock adds chunks; everybody else writes to where the bytes are.
    auto lock = subfile::take_lock(directory->get(), contents, set.stub.identity, file.writer_facts());
    if (!lock) return tl::unexpected(lock.error());
    set.adds = lock->has_value();
    if (set.adds) set.lock = std::move(**lock);
    if (set.adds) (void)subfile::give_mode(directory->get(), fd);  // whoever may use the file now may use its subfiles
    return {};
}

core::Status place_set(OpenFile& file)
{
    if (!file.set || !file.set->has_tier()) return {};
    auto status = core::Status();
    if (file.session->team().rank() != 0 && file.set->made_now) status = choose_place(file);
    if (file.session->team().rank() != 0 && !file.set->made_now) find_place(file);
    file.settings.options.persistency.reset();  // it is that of the target, and not that of the buffers
    return status;
}

}  // namespace tapioca::file
