#include "stage/log_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "core/units.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

namespace {

// Requests smaller than a page are copied into a mapping; for larger ones, a call costs less than the page faults.
constexpr std::uint64_t small_bytes = 4096;

core::Status allocate(int fd, std::uint64_t begin, std::uint64_t bytes)
{
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(bytes));
    if (error != 0) return core::fail_errno(error, "making room in the log");
    return {};
}

Counters& counters_in(MappedFile const& first_page)
{
    return *reinterpret_cast<Counters*>(first_page.data() + sizeof(Head));
}

tl::unexpected<core::Failure> full()
{
    return core::fail(Errc::no_space, "the log has reached TAPIOCA_STAGE_SIZE");
}

core::Status write_head(int fd, Head head, char const* magic)
{
    std::memcpy(head.magic, magic, sizeof head.magic);
    seal(head);
    return write_all(fd, 0, std::as_bytes(std::span(&head, 1)));
}

}  // namespace

core::Result<LogWriter> LogWriter::create(LogPlace const& place, Head head)
{
    auto meta = create_private(place.meta());
    if (!meta) return tl::unexpected(meta.error());
    auto data = create_private(place.data());
    if (!data) {
        (void)remove_private(place.meta());
        return tl::unexpected(data.error());
    }
    head.version = format_version;
    head.bytes = head_bytes;
    head.meta_block = meta_block_bytes;
    head.data_block = data_block_bytes;
    LogWriter writer(place, std::move(*meta), std::move(*data), head, head.rank);
    core::Status status = allocate(writer.meta_.get(), 0, head_bytes);
    if (status) status = allocate(writer.data_.get(), 0, head_bytes);
    if (status) status = write_head(writer.meta_.get(), head, meta_magic);
    if (status) status = write_head(writer.data_.get(), head, data_magic);
    if (status) status = writer.attach();
    if (!status) {
        (void)remove_log(place);
        return tl::unexpected(status.error());
    }
    auto& counters = counters_in(writer.first_page_);
    counters = {head_bytes, head_bytes, head.generation, ~head.generation, pattern::no_offset, 0, 0, 0, 0, 0, 0, {}};
    return writer;
}

core::Result<LogWriter> LogWriter::join(LogPlace const& place, std::uint32_t rank)
{
    auto meta = open_private(place.meta(), true);
    if (!meta) return tl::unexpected(meta.error());
    auto data = open_private(place.data(), true);
    if (!data) return tl::unexpected(data.error());
    std::vector<std::byte> first(head_bytes);
    if (auto status = read_all(meta->get(), 0, first); !status) return tl::unexpected(status.error());
    auto const head = read_head(first, meta_magic);
    if (!head) return tl::unexpected(head.error());
    LogWriter writer(place, std::move(*meta), std::move(*data), *head, rank);
    if (auto status = writer.attach(); !status) return tl::unexpected(status.error());
    return writer;
}

core::Status LogWriter::move_to(LogPlace const& place)
{
    // NAME.meta comes last, because a recovery looks for it.
    for (auto const file : {&LogPlace::data, &LogPlace::meta})
        if (auto status = rename_private((place_.*file)(), (place.*file)()); !status) return status;
    place_ = place;
    return {};
}

core::Status LogWriter::check_place() const
{
    if (is_named(meta_, place_.meta()) && is_named(data_, place_.data())) return {};
    return core::fail(Errc::io, place_.meta() + ": somebody has moved the log away");
}

bool LogWriter::is_removed() const
{
    struct stat found = {};
    return ::fstat(meta_.get(), &found) == 0 && found.st_nlink == 0;
}

core::Status LogWriter::attach()
{
    seed_ = seed_of(head_);
    hold(meta_);
    auto page = MappedFile::of(meta_.get(), 0, head_bytes, true);
    if (!page) return tl::unexpected(page.error());
    first_page_ = std::move(*page);
    note_changes(0, false);
    return {};
}

core::Result<std::uint64_t> LogWriter::deal_data(std::uint64_t bytes)
{
    if (used_ + bytes > limit_) return full();
    used_ += bytes;
    return std::atomic_ref(counters_in(first_page_).data_end).fetch_add(bytes);
}

/// Allocates a block of NAME.meta. The file is extended before the counter is raised, so that a file shorter than the
/// counter says was cut off by somebody, even if this process dies in between.
core::Result<std::uint64_t> LogWriter::deal_block(std::uint64_t bytes)
{
    if (used_ + bytes > limit_) return full();
    std::atomic_ref const end(counters_in(first_page_).meta_end);
    auto begin = end.load();
    do {
        if (auto status = allocate(meta_.get(), begin, bytes); !status) return tl::unexpected(status.error());
    } while (!end.compare_exchange_strong(begin, begin + bytes));
    used_ += bytes;
    return begin;
}

core::Status LogWriter::add_block(std::uint64_t bytes)
{
    auto const begin = deal_block(bytes);
    if (!begin) return tl::unexpected(begin.error());
    auto mapped = MappedFile::of(meta_.get(), *begin, bytes, true);
    if (!mapped) return tl::unexpected(mapped.error());
    block_ = std::move(*mapped);
    (void)block_.populate(true);
    LogBlock head{block_magic, rank_, bytes, blocks_, entries_, 0};
    seal(head, seed_);
    // As with entries, the first eight bytes come last.
    std::uint64_t first = 0;
    std::memcpy(&first, &head, sizeof first);
    std::memcpy(block_.data() + sizeof first, reinterpret_cast<std::byte const*>(&head) + sizeof first,
                sizeof head - sizeof first);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(block_.data())).store(first, std::memory_order_release);
    block_at_ = sizeof head;
    block_begin_ = *begin;
    ++blocks_;
    return {};
}

core::Status LogWriter::make_room_for_entries(std::uint64_t bytes)
{
    if (block_.data() && block_at_ + bytes <= block_.bytes()) return {};
    constexpr auto unit = static_cast<std::int64_t>(meta_block_bytes);
    return add_block(
        static_cast<std::uint64_t>(core::align_up(static_cast<std::int64_t>(bytes + sizeof(LogBlock)), unit)));
}

core::Result<std::uint64_t> LogWriter::make_room_for_data(std::uint64_t bytes)
{
    if (data_at_ + bytes <= data_end_) return data_at_;
    // In a log of a single rank, the newly allocated part follows the remaining one, so the remaining bytes can be
    // used, too.
    auto const left = head_.mapping == StageMapping::process ? data_end_ - data_at_ : 0;
    constexpr auto unit = static_cast<std::int64_t>(data_block_bytes);
    auto const more = static_cast<std::uint64_t>(core::align_up(static_cast<std::int64_t>(bytes - left), unit));
    auto const begin = deal_data(more);
    if (!begin) return tl::unexpected(begin.error());
    if (*begin != data_end_ || head_.mapping == StageMapping::node) data_at_ = *begin;
    data_end_ = *begin + more;
    return data_at_;
}

/// Maps the part of NAME.data that contains [position, end), with room for more.
core::Status LogWriter::open_window(std::uint64_t position, std::uint64_t end)
{
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    auto const begin = position / page * page;
    auto const length = std::max(end, std::min(data_end_, begin + data_block_bytes)) - begin;
    auto const map = [&]() -> core::Status {
        auto mapped = MappedFile::of(data_.get(), begin, length, true);
        if (!mapped) return tl::unexpected(mapped.error());
        window_ = std::move(*mapped);
        window_begin_ = begin;
        return {};
    };
    // If several ranks write, touching the pages avoids the file's lock, which allocating with a call takes.
    if (head_.mapping == StageMapping::node) {
        if (::fallocate(data_.get(), 0, static_cast<off_t>(begin + length - 1), 1) == 0)
            if (auto status = map(); !status || window_.populate(true) == 0) return status;
        window_ = {};
    }
    if (auto status = allocate(data_.get(), begin, length); !status) return status;
    auto status = map();
    if (status) (void)window_.populate(true);
    return status;
}

core::Status LogWriter::store(std::uint64_t position, std::span<std::byte const> bytes)
{
    bool const in_window = head_.mapping == StageMapping::node || bytes.size() < small_bytes;
    if (!in_window) return write_all(data_.get(), position, bytes);
    auto const end = position + bytes.size();
    if (position < window_begin_ || end > window_begin_ + window_.bytes())
        if (auto status = open_window(position, end); !status) return status;
    std::memcpy(window_.data() + (position - window_begin_), bytes.data(), bytes.size());
    return {};
}

core::Status LogWriter::append(pattern::Variable const& variable, std::int64_t shift, RequestData const& data,
                               Note note)
{
    if (!why_broken_.empty()) return core::fail(Errc::io, why_broken_);
    note.data_bytes = variable.bytes();
    note.position = data_at_;
    if (!data.empty()) {
        auto const position = make_room_for_data(note.data_bytes);
        if (!position) return tl::unexpected(position.error());
        note.position = *position;
        auto const checksum = data.store(note.data_bytes, [&](std::uint64_t at, std::span<std::byte const> chunk) {
            return store(note.position + at, chunk);
        });
        if (!checksum) return tl::unexpected(checksum.error());
        note.data_checksum = *checksum;
    }
    auto const entries = encode(variable, shift, note, seed_);
    if (entries.size() > UINT32_MAX)
        return core::fail(Errc::unsupported, "a list of so many extents does not fit the log");
    if (auto status = make_room_for_entries(entries.size()); !status) return status;
    if (!data.empty()) data_at_ = note.position + note.data_bytes;
    // Entries become visible one after the other, each with its first eight bytes; the data is complete by then.
    for (std::size_t at = 0; at < entries.size();) {
        std::uint64_t first = 0;
        std::memcpy(&first, entries.data() + at, sizeof first);
        auto const bytes = static_cast<std::uint32_t>(first);
        auto* const to = block_.data() + block_at_;
        std::memcpy(to + sizeof first, entries.data() + at + sizeof first, bytes - sizeof first);
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(first, std::memory_order_release);
        block_at_ += bytes;
        at += bytes;
        ++entries_;
        std::atomic_ref(counters_in(first_page_).entries).fetch_add(1);
    }
    last_epoch_ = note.epoch;
    tell_appended();
    return {};
}

core::Status LogWriter::append(pattern::Variable const& variable, std::int64_t shift, RequestData const& data,
                               std::uint64_t epoch, std::uint32_t number)
{
    Note note;
    note.epoch = epoch;
    note.variable = number;
    return append(variable, shift, data, note);
}

core::Status LogWriter::append_stored(pattern::Variable const& variable, std::int64_t shift, RequestData const& data,
                                      std::uint64_t epoch, std::uint32_t number)
{
    Note note;
    note.epoch = epoch;
    note.variable = number;
    note.flags = flag_stored;
    return append(variable, shift, data, note);
}

core::Status LogWriter::append_gone(std::int64_t begin, std::int64_t end, std::uint64_t epoch)
{
    Extent const range{begin, end - begin};
    Note note;
    note.epoch = epoch;
    note.flags = flag_gone;
    note.variable = rank_;  // in case its block's head is damaged
    return append(pattern::Variable::from_extents(0, {&range, 1}), 0, {nullptr}, note);
}

void LogWriter::mark_doubtful()
{
    std::atomic_ref(counters_in(first_page_).doubtful).store(UINT64_MAX);
}

void LogWriter::note_changes(std::int64_t ahead_ns, bool durable)
{
    changes_ =
        std::make_shared<target::Changes>(&counters_in(first_page_).touched, ahead_ns, durable ? meta_.get() : -1);
}

void LogWriter::tell_beside()
{
    std::atomic_ref(counters_in(first_page_).beside).fetch_add(1);
}

void LogWriter::tell_range(std::int64_t begin, std::int64_t end)
{
    auto& counters = counters_in(first_page_);
    std::atomic_ref const first(counters.begin);
    std::atomic_ref const last(counters.end);
    for (auto now = first.load(); begin < now && !first.compare_exchange_weak(now, begin);) {}
    for (auto now = last.load(); end > now && !last.compare_exchange_weak(now, end);) {}
}

void LogWriter::tell_appended()
{
    std::atomic_ref(counters_in(first_page_).appended).fetch_add(1);
}

LogImage::EntryCursor LogWriter::cursor() const
{
    if (blocks_ == 0) return {};
    return {blocks_ - 1, block_at_, entries_, last_epoch_, block_begin_};
}

core::Status LogWriter::sync(bool parent)
{
    // The data comes first, because an entry promises that its data is there.
    if (core::uninterrupted([&] { return ::fdatasync(data_.get()); }) != 0)
        return core::fail_errno(errno, place_.data());
    if (core::uninterrupted([&] { return ::fdatasync(meta_.get()); }) != 0)
        return core::fail_errno(errno, place_.meta());
    if (!parent) return {};
    for (auto const& path : {place_.directory, place_.directory + "/.."}) {
        Descriptor const directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!directory || core::uninterrupted([&] { return ::fsync(directory.get()); }) != 0)
            return core::fail_errno(errno, path);
    }
    return {};
}

void LogWriter::say_emptied(std::uint64_t generation)
{
    auto& counters = counters_in(first_page_);
    std::atomic_ref(counters.emptied).store(generation);
    std::atomic_ref(counters.emptied_inverted).store(~generation);
}

void LogWriter::finish()
{
    // A log that could not be emptied says so already, and its head on disk is older than this one.
    if (why_broken_.empty()) say_emptied(head_.generation + 1);
    give_up("the file is closed");
}

core::Status LogWriter::reset(std::uint64_t epoch, bool empty)
{
    block_ = {};
    window_ = {};
    window_begin_ = block_at_ = blocks_ = entries_ = used_ = last_epoch_ = 0;
    data_at_ = data_end_ = 0;
    ++head_.generation;
    head_.epoch = epoch;
    seed_ = seed_of(head_);
    changes_->forget();
    if (!empty) return {};
    // If emptying is interrupted from here on, the log reads as empty: all of it was flushed.
    say_emptied(head_.generation);
    auto& counters = counters_in(first_page_);
    counters.meta_end = head_bytes;
    counters.data_end = head_bytes;
    counters.begin = pattern::no_offset;
    counters.end = 0;
    counters.doubtful = 0;
    counters.touched = 0;
    counters.beside = 0;
    counters.entries = 0;
    for (auto const* const file : {&meta_, &data_})
        if (core::uninterrupted([&] { return ::ftruncate(file->get(), head_bytes); }) != 0)
            return core::fail_errno(errno, place_.directory);
    if (auto status = write_head(meta_.get(), head_, meta_magic); !status) return status;
    return write_head(data_.get(), head_, data_magic);
}

}  // namespace tapioca::stage
