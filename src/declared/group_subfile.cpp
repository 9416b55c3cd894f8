#include "declared/group_subfile.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "declared/file_state.hpp"
#include "file/on_tier.hpp"
#include "subfile/directory_files.hpp"

namespace tapioca::declared {

namespace {

/// Chunks on a tier begin at pages; its files have no stripes.
constexpr std::int64_t page = 4096;
/// A subfile that has so many bytes is sealed and drained, if that is done while the program computes.
constexpr std::uint64_t sealed_by_default = std::uint64_t{64} << 20;
/// How much may wait on a tier by default: what is free there is the limit.
constexpr std::uint64_t unlimited = std::uint64_t{1} << 62;

subfile::SetWriter::Place place_of(FileState const& file, int first, std::uint32_t number, bool on_tier)
{
    auto const& set = *file.set;
    return {.directory = file.set_directory(),
            .identity = set.stub.identity,
            .generation = set.generation,
            .subfile = number,
            .block_bytes = on_tier ? page : std::max<std::int64_t>(file.storage.block_bytes, file.storage.stripe_bytes),
            .first = first == file.session->team().rank(),
            .on_tier = on_tier ? set.on_tier : std::string()};
}

}  // namespace

GroupSubfile::GroupSubfile(FileState& file, std::vector<int> ranks, std::uint32_t number, bool on_tier,
                           std::uint64_t groups_on_node)
    : whole_(file),
      ranks_(std::move(ranks)),
      writer_(place_of(file, ranks_.front(), number, on_tier), file.set->epoch),
      on_tier_(on_tier)
{
    auto const& options = file.settings.options;
    auto const most = options.target_size.value_or(unlimited);
    sealed_bytes_ = std::min(sealed_by_default, most / 2);
    if (on_tier) when_drained_ = options.target_drain.value_or(TargetDrain::never);
    if (!on_tier || ranks_.front() != file.session->team().rank()) return;
    drainer_ = std::make_unique<subfile::SealedDrainer>(
        subfile::SealedDrainer::Where{file.set_directory(), file.set->on_tier, file.set->stub.identity, most,
                                      groups_on_node},
        file.session->core_set());
}

GroupSubfile::~GroupSubfile() = default;

MPI_Comm GroupSubfile::group() const
{
    auto const& team = whole_.session->team();
    if (ranks_.size() == static_cast<std::size_t>(team.size())) return team.all();
    return comm::kept_part(team, ranks_);
}

std::shared_ptr<FileState> const& GroupSubfile::file()
{
    if (subfile_) return subfile_;
    opened_ = writer_.subfile();
    auto options = whole_.settings.options;
    options.stage.reset();
    options.report.reset();
    // A drain of earlier subfiles may have left none, and removed the directory. If it cannot be made, opening fails.
    if (on_tier_ && ranks_.front() == whole_.session->team().rank()) (void)file::make_place(whole_);
    subfile_ =
        open_file(group(), writer_.path(), Mode::create, options, MPI_INFO_NULL,
                  {.within_set = true, .may_stage = false, .kept = group() == MPI_COMM_SELF ? &session_ : nullptr});
    subfile_->settings.options.report = whole_.settings.options.report;  // so that plans are kept for the account
    core::Status status;
    if (subfile_->session->team().rank() == 0) {
        auto const directory = subfile::open_directory(writer_.directory());
        status = directory ? subfile::take_mode(directory->get(), subfile_->target()->descriptor())
                           : tl::unexpected(directory.error());
    }
    subfile_->raise_if("open", subfile_->session->agreement().agree(status));
    return subfile_;
}

core::Status GroupSubfile::translated(file::Raised const& error) const
{
    auto const group_rank = error.failure.rank;
    auto const rank = group_rank < 0 ? -1 : ranks_[static_cast<std::size_t>(group_rank)];
    if (rank >= 0 && rank != whole_.session->team().rank()) return {};  // that rank says it
    auto failure = error.failure;
    failure.rank = -1;
    failure.text = fmt::format("{}: {}", subfile::subfile_name(opened_), error.text);
    return tl::unexpected(std::move(failure));
}

core::Status GroupSubfile::sync()
{
    return within_group([&]() -> core::Status {
        if (subfile_) subfile_->sync();
        auto status = writer_.sync();
        if (drainer_ && !sealed_.empty()) core::keep_first(status, drainer_->sync(sealed_));  // a drain has failed
        return status;
    });
}

void GroupSubfile::close_subfile(bool durable)
{
    auto const subfile = std::exchange(subfile_, nullptr);  // whatever fails below, it is not opened again
    if (!subfile) return;
    if (durable) subfile->sync();
    whole_.account.add(subfile->account);
    subfile->settings.options.report.reset();
    subfile->close();
}

core::Status GroupSubfile::close(bool durable)
{
    return within_group([&]() -> core::Status {
        auto closed = writer_.close();  // the library may keep this object for the next file's plans
        close_subfile(durable);
        // Where drain() or a step has failed, sealed_ may have subfiles that nobody has made durable or drained yet.
        if (durable && drainer_) core::keep_first(closed, drainer_->sync(sealed_));
        seal();
        return closed;
    });
}

/// Nothing more will be written to the present subfile. Local.
void GroupSubfile::seal()
{
    if (drainer_ && on_tier_ && writer_.has_chunks()) sealed_.push_back({writer_.subfile(), writer_.end()});
}

/// Bytes of what is to be drained later. Local.
std::uint64_t GroupSubfile::sealed_so_far() const
{
    std::uint64_t bytes = 0;
    for (auto const& subfile : sealed_) bytes += subfile.bytes;
    return bytes;
}

core::Status GroupSubfile::end_subfile()
{
    return within_group([&]() -> core::Status {
        if (!on_tier_ || writer_.end() == 0) return {};
        if (comm::tell(group(), writer_.has_chunks() ? 1 : 0) == 0) return {};  // all steps have failed
        seal();
        go_on_in(writer_.subfile() + whole_.set->numbers, true);
        // If draining fails, the data stays on the tier, and only with `background` does a later sync() drain it.
        close_subfile(when_drained_ != TargetDrain::background);
        return {};
    });
}

void GroupSubfile::make_room(std::uint64_t bytes)
{
    if (when_drained_ != TargetDrain::never) {
        auto const next = static_cast<NextPlace>(comm::tell(group(), drainer_ ? static_cast<int>(choose(bytes)) : 0));
        if (next != NextPlace::same) move_on(bytes);
    }
    (on_tier_ ? levels_.tier_bytes : levels_.directory_bytes) += bytes;
}

/// Whether the group goes on in another subfile. On its first rank; local.
GroupSubfile::NextPlace GroupSubfile::choose(std::uint64_t bytes)
{
    bool const has_room = drainer_->has_room(bytes, sealed_so_far() + (on_tier_ ? writer_.end() : 0));
    bool const has_data = on_tier_ && writer_.end() > 0;
    bool const full = has_data && when_drained_ == TargetDrain::background && writer_.end() >= sealed_bytes_;
    return full || has_room != on_tier_ ? NextPlace::on_tier : NextPlace::same;
}

void GroupSubfile::move_on(std::uint64_t bytes)
{
    seal();
    go_on_in(writer_.subfile() + whole_.set->numbers, true);  // even if closing fails: opening empties a subfile
    close_subfile(when_drained_ == TargetDrain::close);       // what is drained soon need not be durable here
    auto next = NextPlace::not_yet;
    while (next == NextPlace::not_yet)
        next = static_cast<NextPlace>(comm::tell(group(), drainer_ ? static_cast<int>(next_place(bytes)) : 0));
    go_on_in(writer_.subfile(), next == NextPlace::on_tier);
    file::leave_drained(whole_);
}

void GroupSubfile::go_on_in(std::uint32_t number, bool on_tier)
{
    on_tier_ = on_tier;
    writer_.move_on(number, on_tier ? whole_.set->on_tier : std::string());
}

/// On the group's first rank; local. Waits for room, for a while.
GroupSubfile::NextPlace GroupSubfile::next_place(std::uint64_t bytes)
{
    core::Stopwatch const watch(levels_.waiting);
    if (when_drained_ == TargetDrain::background) drain_sealed();
    switch (drainer_->wait_for_room(bytes, sealed_so_far())) {
    case subfile::SealedDrainer::Room::yes: return NextPlace::on_tier;
    case subfile::SealedDrainer::Room::no: return NextPlace::in_directory;
    case subfile::SealedDrainer::Room::not_yet: break;
    }
    return NextPlace::not_yet;
}

void GroupSubfile::drain_sealed()
{
    for (auto const& subfile : sealed_) drainer_->add(subfile);
    sealed_.clear();
}

void GroupSubfile::begin_drain(std::vector<subfile::SealedDrainer::Sealed> const& earlier)
{
    if (!drainer_) return;
    drainer_->try_again();
    drain_sealed();
    for (auto const& subfile : earlier) drainer_->add(subfile);
}

bool GroupSubfile::wait_for_drain()
{
    return !drainer_ || drainer_->wait_for_end();
}

GroupSubfile::LevelCounts GroupSubfile::levels() const
{
    auto counts = levels_;
    if (drainer_) counts.drained = drainer_->counts();
    return counts;
}

}  // namespace tapioca::declared
