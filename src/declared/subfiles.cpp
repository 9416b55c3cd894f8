#include "declared/subfiles.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "declared/file_state.hpp"
#include "file/on_tier.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::declared {

namespace {

/// Smaller steps go to the file system, where any rank can read them by itself: the metadata of file formats is small.
constexpr std::uint64_t through_by_default = std::uint64_t{64} << 10;

int group_of_this_rank(FileState const& file, file::Groups const& groups)
{
    return groups.of_rank[static_cast<std::size_t>(file.session->team().rank())];
}

std::vector<int> ranks_of(file::Groups const& groups, int group)
{
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < groups.of_rank.size(); ++rank)
        if (groups.of_rank[rank] == group) ranks.push_back(static_cast<int>(rank));
    return ranks;
}

/// How many groups there are on this rank's node, if none has ranks of several nodes.
std::uint64_t groups_on_this_node(FileState const& file, file::Groups const& groups)
{
    auto const& team = file.session->team();
    std::set<int> here;
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        here.insert(groups.of_rank[static_cast<std::size_t>(rank)]);
    return here.size();
}

std::uint32_t number_of(FileState const& file, int group)
{
    return file.set->first_subfile + static_cast<std::uint32_t>(group);
}

}  // namespace

Subfiles::Subfiles(FileState& file)
    : file_(file),
      groups_(*file::groups_of(file.set->layout, file.session->team(), *file.around)),  // rank 0 has tried it
      own_(file, ranks_of(groups_, group_of_this_rank(file, groups_)),
           number_of(file, group_of_this_rank(file, groups_)), file.set->has_tier(), groups_on_this_node(file, groups_))
{
    if (!file.set->has_tier()) return;
    file.set->numbers = static_cast<std::uint32_t>(groups_.count) + 1;
    auto const& nodes = file.session->team().nodes();
    std::vector<int> all;
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (auto const rank : nodes[node]) {
            file.set->node_of[number_of(file, groups_.of_rank[static_cast<std::size_t>(rank)])] =
                static_cast<int>(node);
            all.push_back(rank);
        }
    file::tell_peers(file);
    std::sort(all.begin(), all.end());
    common_ = std::make_unique<GroupSubfile>(file, std::move(all), number_of(file, groups_.count), false);
}

Subfiles::~Subfiles() = default;

GroupSubfile& Subfiles::of_step(std::uint64_t bytes)
{
    auto const through = file_.settings.options.target_through.value_or(through_by_default);
    return common_ && bytes < through ? *common_ : own_;
}

void Subfiles::advance()
{
    written_ = true;
    own_.writer().advance();
    if (common_) common_->writer().advance();
}

core::Status Subfiles::sync()
{
    synced_ = true;
    auto status = own_.sync();
    if (common_) core::keep_first(status, common_->sync());
    if (status && file_.session->team().rank() == 0) status = sync_set();
    if (auto agreed = file_.session->agreement().agree(status); !agreed) return agreed;
    bool const drained_meanwhile = common_ && file_.settings.options.target_drain == TargetDrain::background;
    return drained_meanwhile ? bring_to_directory({}) : core::Status();  // until then, some may be nowhere durable
}

core::Status Subfiles::drain()
{
    if (!common_) return {};
    drained_ = true;
    auto& agreement = file_.session->agreement();
    if (auto agreed = agreement.agree(own_.end_subfile()); !agreed) return agreed;
    auto const earlier = file::subfiles_to_drain(file_);
    auto const found = earlier ? core::Status() : tl::unexpected(earlier.error());
    if (auto agreed = agreement.agree(found); !agreed) return agreed;
    if (auto brought = bring_to_directory(*earlier); !brought) return brought;
    bool const first = file_.session->team().rank() == 0;
    auto const status = agreement.agree(first ? file::check_drained(file_) : core::Status());
    file::leave_drained(file_);
    return status;
}

/// Makes it durable that there is a set, and who writes it: without the writer's note, no journal counts. Local.
core::Status Subfiles::sync_set()
{
    if (set_is_durable_) return {};
    auto const sync = [](int fd, char const* what) -> core::Status {
        if (core::uninterrupted([&] { return ::fsync(fd); }) != 0) return core::fail_errno(errno, what);
        return {};
    };
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    auto status = file_.set->made_now ? core::Status()
                                      : subfile::sync_complete_set(file_.set_directory(), file_.set->stub.identity);
    if (status) status = sync(file_.set->lock.get(), "the note of the set's writer");
    if (status) status = sync(target->descriptor(), "the stub");
    if (status) status = target::sync_directory_of(file_.set_directory() + "/" + subfile::writer_name);
    if (status && file_.set->made_now) status = target::sync_directory_of(file_.place);
    set_is_durable_ = status.has_value();
    return status;
}

core::Status Subfiles::resize(std::int64_t size)
{
    auto& session = *file_.session;
    advance();
    core::Status status;
    if (session.team().rank() == 0) {
        auto* const target = dynamic_cast<subfile::SetTarget*>(file_.target());
        status = target ? core::Status() : core::fail(Errc::io, "the subfiles cannot be opened");
        auto const end = target ? target->end_of_chunks() : core::Result<std::int64_t>(0);
        if (!end) status = tl::unexpected(end.error());
        if (status) status = target->resize_rest(size);  // first, so that nothing old comes to light behind the cut
        if (status && *end > size) status = own_.writer().note_cut(size);
    }
    return session.agreement().agree(status);
}

core::Status Subfiles::close()
{
    // What the new index says takes the place of something that may have been made durable.
    bool const durable = synced_ || !file_.set->made_now;
    auto status = own_.close(durable);
    if (common_) core::keep_first(status, common_->close(durable));
    status = file_.session->agreement().agree(status);
    if (!status) {
        file_.set->lock = {};  // for `tapioca subfile recover`
        status.error().text += how_to_complete();
        return status;
    }
    status = file_.session->agreement().agree(file_.session->team().rank() == 0 ? complete() : core::Status());
    if (status && common_) {
        if (!file_.set->made_now || drains() || drained_) file::remove_unused(file_);
        if (drains()) status = bring_to_directory({});
        if (status && drains()) status = check_closed();
        if (status && (drains() || drained_)) file::remove_empty_place(file_);
    }
    note_account();
    return status;
}

/// Whether what is on the tier is drained by this job. Local.
bool Subfiles::drains() const
{
    return common_ && file_.settings.options.target_drain.value_or(TargetDrain::never) != TargetDrain::never;
}

/// Brings what this opening has finished writing, and `earlier` subfiles of this node, from the tier to the directory.
/// Collective.
core::Status Subfiles::bring_to_directory(std::vector<subfile::SealedDrainer::Sealed> const& earlier)
{
    auto& agreement = file_.session->agreement();
    own_.begin_drain(earlier);
    for (std::array<std::int64_t, 1> ended = {0}; ended[0] == 0;) {
        ended[0] = own_.wait_for_drain() ? 1 : 0;
        if (auto agreed = agreement.least(ended); !agreed) return agreed;
    }
    auto status = agreement.agree(own_.drain_status());
    if (!status)
        status.error().text += fmt::format(
            "; what was not drained is still on {} of the nodes: when the file is closed, `tapioca target drain {}` "
            "brings "
            "it to the file system",
            file_.set->stub.tier, core::shell_word(file_.path));
    return status;
}

/// After close() has drained: whether everything is there that this opening has written. Collective.
core::Status Subfiles::check_closed()
{
    bool const first = file_.session->team().rank() == 0;
    return file_.session->agreement().agree(first ? file::check_drained(file_) : core::Status());
}

void Subfiles::note_account()
{
    nlohmann::ordered_json facts{
        {"layout", file_.set->layout}, {"groups", groups_.count}, {"directory", file_.set->stub.directory}};
    if (file_.set->has_tier()) facts["target"] = file_.set->stub.tier;
    if (drains() || drained_) {
        auto const levels = own_.levels();
        facts["levels"] = {{"tier_bytes", levels.tier_bytes},
                           {"file_system_bytes", levels.directory_bytes},
                           {"waiting_seconds", levels.waiting},
                           {"drained_bytes", levels.drained.bytes},
                           {"draining_seconds", levels.drained.seconds}};
    }
    file_.account.more.emplace_back("subfiles", facts.dump());
}

std::string Subfiles::how_to_complete() const
{
    return fmt::format(
        "; the set of subfiles is not complete: `tapioca subfile recover {}` completes it with what was written",
        core::shell_word(file_.path));
}

std::string Subfiles::never_closed() const
{
    if (!file_.set->made_now && !written_) return {};
    return fmt::format(
        "{}: was never closed: its set of subfiles is not complete, and `tapioca subfile recover {}` completes it "
        "with what was written",
        file_.path, core::shell_word(file_.path));
}

core::Status Subfiles::complete()
{
    auto const directory = subfile::open_directory(file_.set_directory());
    if (!directory) return tl::unexpected(directory.error());
    auto* const target = dynamic_cast<subfile::SetTarget*>(file_.target());
    auto const beginning = target ? target->keep_beginning() : core::Status();
    auto const writer = file_.set->has_tier() ? subfile::WriterOfSet::closes_on_tier : subfile::WriterOfSet::closes;
    auto status = subfile::complete_set(directory->get(), file_.set->stub.identity, synced_, writer);
    if (!status) status.error().text += how_to_complete();
    core::keep_first(status, beginning);
    file_.set->lock = {};
    return status;
}

std::string Subfiles::describe() const
{
    return fmt::format("subfiles: {} ({} of them{}); this rank's group of {} writes {}\n", file_.set->layout,
                       groups_.count, file_.set->has_tier() ? ", on " + file_.set->stub.tier : std::string(),
                       own_.ranks().size(), own_.path());
}

}  // namespace tapioca::declared
