#include "subfile/set_directory.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/interrupt.hpp"
#include "machine/storage.hpp"
#include "subfile/directory_files.hpp"

namespace tapioca::subfile {

std::string subfile_name(std::uint32_t number)
{
    return fmt::format("subfile.{}", number);
}

std::string draining_name(std::uint32_t number)
{
    return fmt::format("draining.{}", number);
}

std::string journal_name(std::uint32_t number)
{
    return fmt::format("journal.{}", number);
}

core::Result<core::Descriptor> open_directory(std::string const& path)
{
    core::Descriptor directory(
        core::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (!directory) {
        auto failure = core::fail_errno(errno, "the directory of its subfiles, " + path);
        failure.value().text += ": it must lie beside the file, under the name that the file says";
        return failure;
    }
    return directory;
}

bool SetContents::SeenFile::same_as(SeenFile const& other) const
{
    return exists == other.exists && inode == other.inode && size == other.size &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
}

SetContents::SeenFile SetContents::look(char const* name) const
{
    struct stat file = {};
    if (::fstatat(directory_, name, &file, AT_SYMLINK_NOFOLLOW) != 0) return {};
    return {true, file.st_ino, file.st_size, file.st_mtim};
}

/// When a file of the directory has last got or lost its name: nanoseconds since 1970; -1 if it was so lately that
/// another change might have the same time.
std::int64_t SetContents::names_changed()
{
    constexpr std::int64_t second = 1'000'000'000;
    constexpr auto whole_seconds = 3 * second;
    if (lately_ == 0) {
        bool const own_clock = machine::reach_of(directory_) == machine::Reach::one_host;
        lately_ = own_clock ? second / 50     // Linux moves the clock of these file systems on a hundred times a second
                            : whole_seconds;  // some count these, and the clocks of servers differ
    }
    struct stat directory = {};
    timespec now = {};
    if (::fstat(directory_, &directory) != 0 || ::clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return -1;
    auto const changed = directory.st_mtim.tv_sec * second + directory.st_mtim.tv_nsec;
    auto const lately = directory.st_mtim.tv_nsec == 0 ? whole_seconds : lately_;  // ext3 has no fractions of seconds
    return now.tv_sec * second + now.tv_nsec - changed > lately ? changed : -1;
}

core::Status SetContents::refresh_map()
{
    auto const changed = names_changed();
    if (read_before_ && changed >= 0 && changed == names_known_) return read_known_journals();
    auto const status = refresh();
    names_known_ = status ? changed : -1;
    return status;
}

core::Status SetContents::refresh()
{
    // A job that completes the set meanwhile removes its journals when the new index is there.
    for (int attempts = 0; attempts < 100; ++attempts) {
        if (auto status = refresh_once(); !status) return status;
        if (look(index_name).same_as(index_)) break;
    }
    return {};
}

core::Status SetContents::refresh_once()
{
    auto const index = look(index_name);
    auto const note = look(writer_name);
    if (!read_before_ || !index.same_as(index_) || !note.same_as(note_)) {
        read_before_ = false;
        map_ = {};
        head_ = {};
        writer_ = {};
        lost_ = 0;
        journals_.clear();
        index_ = index;
        note_ = note;
        if (auto status = read_index(); !status) return status;
        if (auto status = read_writer(); !status) return status;
        read_before_ = true;
    }
    bool const live = note_.exists && is_live(directory_);  // asked first: a job writes its last records before it ends
    has_additions_ = false;
    if (writer_.generation > head_.generation) {
        if (auto status = read_journals(); !status) return status;
        has_additions_ =
            std::any_of(journals_.begin(), journals_.end(), [](auto const& one) { return one.second.read > 0; });
    }
    bool const complete = index_.exists && !has_additions_ && (!live || writer_.generation <= head_.generation);
    state_ = complete ? SetState::complete : live ? SetState::live : SetState::interrupted;
    return {};
}

core::Status SetContents::read_index()
{
    auto const file = open_in(directory_, index_name, O_RDONLY);
    if (!file) return file.error().code == Errc::not_found ? core::Status() : tl::unexpected(file.error());
    auto const size = core::size_of(file->get(), index_name);
    if (!size) return tl::unexpected(size.error());
    std::vector<std::byte> bytes(*size);
    if (auto status = core::read_all(file->get(), 0, bytes, "the index"); !status) return status;
    auto const head = read_head(bytes, index_magic);
    if (!head) return tl::unexpected(head.error());
    auto rest = std::span<std::byte const>(bytes).subspan(sizeof(SetHead));
    if (head->identity != identity_)
        return core::fail(Errc::mismatch, "the directory of its subfiles belongs to another file");
    if (head->content_bytes != rest.size() ||
        head->content_checksum != stage::checksum_of(rest.data(), rest.size(), seed_of(identity_)))
        return core::fail(Errc::io, "the index is damaged: the checksum of its records does not match");
    for (auto const seed = seed_of(identity_); !rest.empty();) {
        auto const record = next_record(rest, seed);
        if (record.empty()) return core::fail(Errc::io, "the index is damaged: a record cannot be read");
        if (auto status = map_.add(record); !status) return status;
        rest = rest.subspan(record.size());
    }
    if (map_.epoch() > head->epoch) return core::fail(Errc::io, "the index contradicts itself: an epoch is too late");
    if (!map_.all_announced()) return core::fail(Errc::io, "the index contradicts itself: a subfile without its size");
    if (!map_.subfiles().empty() && map_.subfiles().rbegin()->first >= head->subfiles)
        return core::fail(Errc::io, "the index contradicts itself: too many subfiles");
    head_ = *head;
    return {};
}

core::Status SetContents::read_writer()
{
    auto const file = open_in(directory_, writer_name, O_RDONLY);
    if (!file) return file.error().code == Errc::not_found ? core::Status() : tl::unexpected(file.error());
    WriterNote note = {};
    auto const status = core::read_all(file->get(), 0, std::as_writable_bytes(std::span(&note, 1)), writer_name);
    struct stat facts = {};
    bool const is_plain = ::fstat(file->get(), &facts) == 0 && S_ISREG(facts.st_mode);
    if (!status && status.error().sys_errno != 0 && is_plain) return status;  // otherwise it is being written
    bool const sound = status && std::memcmp(note.magic, note_magic, sizeof note.magic) == 0 &&
                       note.checksum == checksum_of(note) && note.layout[sizeof note.layout - 1] == 0 &&
                       note.host[sizeof note.host - 1] == 0 && note.name[sizeof note.name - 1] == 0;
    if (!sound || note.identity != identity_) return {};  // it is being written, or is left from another set
    if (note.groups > most_groups || note.first_subfile > UINT32_MAX - note.groups)
        return core::fail(Errc::io, "the note of the set's writer has values that no program writes");
    writer_ = note;
    return {};
}

core::Status SetContents::read_journals()
{
    for (auto number = writer_.first_subfile; number - writer_.first_subfile < writer_.groups; ++number) {
        auto& journal = journals_[number];
        if (!journal.file) {
            auto file = open_in(directory_, journal_name(number).c_str(), O_RDONLY);
            if (!file && file.error().code != Errc::not_found) return tl::unexpected(file.error());
            if (!file) continue;  // its group has written nothing
            journal.file = std::move(*file);
        }
        if (auto status = read_journal(number, journal); !status) return status;
    }
    return {};
}

core::Status SetContents::read_known_journals()
{
    for (auto& [number, journal] : journals_)
        if (journal.file)
            if (auto status = read_journal(number, journal); !status) return status;
    return {};
}

/// Takes the complete records that are new; the last one may be on its way.
core::Status SetContents::read_journal(std::uint32_t number, Journal& journal)
{
    auto const size = core::size_of(journal.file.get(), journal_name(number));
    if (!size) return tl::unexpected(size.error());
    if (*size <= journal.read) return {};
    std::vector<std::byte> bytes(*size - journal.read);
    if (auto status = core::read_all(journal.file.get(), journal.read, bytes, "a journal"); !status) return status;
    std::span<std::byte const> rest(bytes);
    if (journal.read == 0) {
        if (rest.size() < sizeof(SetHead)) return {};
        if (stage::is_zero(rest.first(sizeof(SetHead)))) return {};  // the machine stopped before it was durable
        auto const head = read_head(rest, journal_magic);
        if (!head) return tl::unexpected(head.error());
        if (head->identity != identity_ || head->generation != writer_.generation || head->subfiles != number)
            return {};
        rest = rest.subspan(sizeof(SetHead));
        journal.read = sizeof(SetHead);
        if (head->host[sizeof head->host - 1] == 0) journal.host = head->host;
    }
    for (auto const seed = seed_of(identity_);;) {
        auto const record = next_record(rest, seed);
        if (record.empty()) return {};
        auto const lost = is_lost(record);
        if (!lost) return tl::unexpected(lost.error());
        if (*lost) ++lost_;
        if (auto status = *lost ? core::Status() : map_.add(record); !status) return status;
        if (auto const subfile = subfile_of_form(record)) map_.note_host(*subfile, journal.host);
        rest = rest.subspan(record.size());
        journal.read += record.size();
    }
}

/// Whether the record is of a chunk that is to be left out.
core::Result<bool> SetContents::is_lost(std::span<std::byte const> record) const
{
    if (!leaves_out_lost_ || kind_of(record) != RecordKind::chunk) return false;
    auto const chunk = decode_chunk(record);
    if (!chunk) return tl::unexpected(chunk.error());
    struct stat file = {};
    bool const exists = ::fstatat(directory_, subfile_name(chunk->subfile).c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists && errno != ENOENT) return core::fail_errno(errno, subfile_name(chunk->subfile));
    if (!exists && on_tier_) return false;
    return map_.end_in_subfile(*chunk) > (exists ? static_cast<std::uint64_t>(file.st_size) : 0);
}

std::uint32_t SetContents::next_subfile() const
{
    return std::max(next_without_note(), writer_.first_subfile + writer_.groups);
}

std::uint32_t SetContents::next_without_note() const
{
    auto next = head_.subfiles;
    for (auto const& [number, bytes] : map_.subfiles()) next = std::max(next, number + 1);
    return next;
}

bool is_live(int directory)
{
    auto const file = open_in(directory, writer_name, O_RDONLY);
    return file && is_locked(file->get());
}

}  // namespace tapioca::subfile
