// Who adds chunks to a set: making it, taking its lock, completing its index, and removing it.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/set_directory.hpp"
#include "subfile/unused_tails.hpp"

namespace tapioca::subfile {

namespace {

core::Status remove_files(int directory)
{
    core::Status status;
    // What others look at first goes first.
    for (auto const* const name : {index_name, writer_name})
        if (::unlinkat(directory, name, 0) != 0 && errno != ENOENT) return core::fail_errno(errno, name);
    auto const listed = each_name(directory, [&](std::string const& name) {
        if (belongs_to_set(name) && ::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT)
            core::keep_first(status, core::fail_errno(errno, name));
    });
    core::keep_first(status, listed);
    return status;
}

core::Status write_note(core::Descriptor const& file, SetId const& identity, std::uint64_t generation,
                        std::uint32_t first_subfile, WriterFacts const& facts)
{
    WriterNote note = {};
    std::memcpy(note.magic, note_magic, sizeof note.magic);
    note.identity = identity;
    note.generation = generation;
    note.first_subfile = first_subfile;
    note.groups = facts.groups;
    note.ranks = facts.ranks;
    note.nodes = facts.nodes;
    note.process = static_cast<std::uint64_t>(::getpid());
    put_text(note.layout, facts.layout);
    put_text(note.host, core::host_name());
    put_text(note.name, facts.name);
    note.checksum = checksum_of(note);
    return core::write_all(file.get(), 0, std::as_bytes(std::span(&note, 1)), writer_name);
}

std::string interrupted_text(std::string const& path, WriterNote const& writer)
{
    if (writer.generation == 0)
        return "the directory of these subfiles has neither an index nor a note of the job that wrote them, so nothing "
               "says what is in them: if you have a copy of the directory, put it in its place";
    return fmt::format(
        "the job that wrote these subfiles (process {} on {}) has ended without closing the file: `tapioca subfile "
        "recover {}` completes the set with everything that was written",
        writer.process, core::printable(writer.host), core::shell_word(path));
}

core::Status add_all(ExtentMap& map, std::span<std::byte const> records, SetId const& identity)
{
    for (auto const seed = seed_of(identity); !records.empty();) {
        auto const record = next_record(records, seed);
        if (record.empty()) return core::fail(Errc::io, "the new index has a record that cannot be read");
        if (auto status = map.add(record); !status) return status;
        records = records.subspan(record.size());
    }
    return {};
}

/// The index of these records; `map` is what they say, and `contents` what was before.
std::vector<std::byte> make_index(int directory, SetContents const& contents, std::span<std::byte const> records,
                                  ExtentMap const& map, bool on_tier)
{
    auto const& writer = contents.writer();
    struct stat rest = {};
    SetHead head = {};
    std::memcpy(head.magic, index_magic, sizeof head.magic);
    head.version = format_version;
    head.bytes = sizeof head;
    head.identity = writer.identity;
    head.generation = writer.generation;
    head.content_bytes = records.size();
    head.content_checksum = stage::checksum_of(records.data(), records.size(), seed_of(writer.identity));
    head.size = map.end();
    if (::fstatat(directory, rest_name, &rest, AT_SYMLINK_NOFOLLOW) == 0)
        head.size = std::max<std::int64_t>(head.size, rest.st_size);
    head.epoch = contents.map().epoch();
    // A group may have begun one more subfile on a node, of which no journal knows.
    head.subfiles = contents.next_subfile() + (on_tier ? writer.groups : 0);
    head.ranks = writer.ranks;
    head.nodes = writer.nodes;
    head.groups = writer.groups;
    head.written = static_cast<std::uint64_t>(std::time(nullptr));
    put_text(head.layout, writer.layout);
    put_text(head.host, writer.host);
    put_text(head.name, writer.name);
    seal(head);
    auto const first = std::as_bytes(std::span(&head, 1));
    std::vector<std::byte> index(first.begin(), first.end());
    index.insert(index.end(), records.begin(), records.end());
    return index;
}

core::Status replace_index(int directory, std::span<std::byte const> index, bool durable)
{
    (void)::unlinkat(directory, new_index_name, 0);
    auto const file = open_in(directory, new_index_name, O_RDWR | O_CREAT | O_EXCL);
    if (!file) return tl::unexpected(file.error());
    auto status = core::write_all(file->get(), 0, index, "the index");
    if (status && durable) status = sync(file->get(), "the index");
    if (status && ::renameat(directory, new_index_name, directory, index_name) != 0)
        status = core::fail_errno(errno, "naming the index");
    if (status && durable) return sync(directory, "the directory of subfiles");
    if (!status) (void)::unlinkat(directory, new_index_name, 0);
    return status;
}

bool has_no_room(core::Status const& status)
{
    return !status && (status.error().sys_errno == ENOSPC || status.error().sys_errno == EDQUOT);
}

/// The same. Where there is no room, what failed steps have left is cut off, and may leave enough of it.
core::Status replace_index_in_little_room(int directory, std::span<std::byte const> index, bool durable,
                                          SetContents const& contents, bool on_tier)
{
    auto status = replace_index(directory, index, durable);
    if (has_no_room(status) && cut_unused_tails(directory, contents, on_tier) > 0)
        status = replace_index(directory, index, durable);
    constexpr std::size_t block = 4096;  // of most file systems
    if (has_no_room(status))
        status.error().text += fmt::format(": {} bytes must be free for it; what was written stays as it is",
                                           (index.size() + block - 1) / block * block);
    return status;
}

/// Whether a stub in the same place, other than the one with this inode, leads to the directory.
bool is_named_by_another(std::string const& directory, std::uint64_t inode)
{
    auto const at = directory.rfind('/') + 1;
    auto const around = open_directory(at == 0 ? "." : directory.substr(0, at));
    bool found = !around;  // who cannot look takes care
    auto const look = [&](std::string const& name) {
        struct stat file = {};
        bool const candidate = !found && ::fstatat(around->get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
                               S_ISREG(file.st_mode) && file.st_size == static_cast<off_t>(stub_bytes) &&
                               file.st_ino != inode;
        auto const stub = candidate ? find_stub(directory.substr(0, at) + name) : std::nullopt;
        found = found || (stub && *stub && (*stub)->directory == directory.substr(at));
    };
    return found || !each_name(around->get(), look) || found;
}

/// Whether another stub than the one with this inode needs the directory.
bool is_needed(int opened, std::string const& directory, std::uint64_t inode)
{
    struct stat link = {};
    bool const linked = ::fstatat(opened, link_name, &link, AT_SYMLINK_NOFOLLOW) == 0;
    if (linked && link.st_ino == inode) return false;
    return (linked && link.st_nlink > 1) || is_named_by_another(directory, inode);
}

/// Whether a new set of this stub may take the directory, and remove what a set has left there.
bool is_free(std::string const& path, std::uint64_t inode)
{
    auto const directory = open_directory(path);
    if (!directory) return directory.error().code == Errc::not_found;
    if (is_live(directory->get())) return true;  // making the set fails, and says why
    bool empty = true;
    auto const listed = each_name(directory->get(), [&](std::string const& name) {
        if (name != writer_name && belongs_to_set(name)) empty = false;
    });
    return listed && (empty || !is_needed(directory->get(), path, inode));
}

/// Two writers that do not see each other's locks would lose each other's chunks. To be called with the lock.
core::Status check_locks(int directory)
{
    if (is_live(directory)) return {};
    return core::fail(Errc::unsupported,
                      "locks (fcntl) have no effect on this file system, and sets of subfiles need them: mount it with "
                      "locks, or write a plain file");
}

/// What jobs that were killed have left, and no index knows: it is not the data of those who get these numbers next.
core::Status remove_unknown(int directory, std::uint32_t first)
{
    return each_name(directory, [&](std::string const& name) {
        for (auto const* const prefix : {"subfile.", "journal.", "draining."})
            if (auto const number = number_in(name, prefix); number && *number >= first)
                (void)::unlinkat(directory, name.c_str(), 0);
    });
}

/// Empties the directory and writes the note of its first writer.
core::Result<core::Descriptor> make_note(std::string const& directory, SetId const& identity, WriterFacts const& facts,
                                         int like)
{
    auto const opened = open_directory(directory);
    if (!opened) return tl::unexpected(opened.error());
    if (auto const mode = like < 0 ? core::Status() : give_mode(opened->get(), like); !mode)
        return tl::unexpected(mode.error());
    if (is_live(opened->get()))
        return core::fail(Errc::invalid_state, "another job is writing the subfiles of this file: wait until it ends");
    if (auto status = remove_files(opened->get()); !status) return tl::unexpected(status.error());
    auto note = open_in(opened->get(), writer_name, O_RDWR | O_CREAT | O_EXCL);
    if (!note) return note;
    auto status = lock_alone(note->get()) ? core::Status() : core::fail_errno(errno, "locking the subfiles");
    struct stat mine = {};
    struct stat named = {};
    if (status && (::fstat(note->get(), &mine) != 0 ||
                   (::fstatat(opened->get(), writer_name, &named, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)))
        status = core::fail_errno(errno, "the note of the set's writer");
    if (status && mine.st_ino != named.st_ino)
        return core::fail(Errc::invalid_state, "another job makes subfiles of this file: wait until it ends");
    if (status) status = check_locks(opened->get());
    if (status) status = write_note(*note, identity, 1, 0, facts);
    if (status) return note;
    (void)::unlinkat(opened->get(), writer_name, 0);
    return tl::unexpected(status.error());
}

}  // namespace

std::string choose_directory(std::string const& path, int stub)
{
    constexpr int most_choices = 1000;
    struct stat file = {};
    (void)::fstat(stub, &file);
    for (int choice = 1; choice < most_choices; ++choice)
        if (auto name = directory_name(path, choice); is_free(beside(path, name), file.st_ino)) return name;
    return directory_name(path);
}

void link_stub(std::string const& path, std::string const& directory)
{
    auto const link = directory + "/" + link_name;
    (void)::unlink(link.c_str());
    (void)::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, link.c_str(), AT_SYMLINK_FOLLOW);
}

core::Result<core::Descriptor> make_set(std::string const& directory, SetId const& identity, WriterFacts const& facts,
                                        int like)
{
    if (facts.groups > most_groups) return core::fail(Errc::unsupported, "the set would have too many subfiles");
    bool const is_new = ::mkdir(directory.c_str(), 0777) == 0;
    if (!is_new && errno != EEXIST) return core::fail_errno(errno, "making the directory of subfiles, " + directory);
    auto lock = make_note(directory, identity, facts, like);
    if (!lock && is_new) (void)::rmdir(directory.c_str());  // nothing is left of what was not made
    return lock;
}

core::Result<std::optional<core::Descriptor>> take_lock(int directory, SetContents& contents, SetId const& identity,
                                                        WriterFacts const& facts)
{
    if (contents.state() == SetState::interrupted)
        return core::fail(Errc::invalid_state, "the job that wrote these subfiles has not completed the set");
    auto note = open_in(directory, writer_name, O_RDWR | O_CREAT);
    if (!note) return tl::unexpected(note.error());
    if (!lock_alone(note->get())) return std::nullopt;
    // Whoever had the lock may have removed the file meanwhile, or changed the set.
    struct stat mine = {};
    struct stat named = {};
    if (::fstat(note->get(), &mine) != 0 || ::fstatat(directory, writer_name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        mine.st_ino != named.st_ino)
        return std::nullopt;
    auto const generation = contents.head().generation + 1;
    auto const first = contents.next_subfile();
    if (auto status = contents.refresh(); !status) return tl::unexpected(status.error());
    if (contents.head().generation + 1 != generation || contents.next_subfile() != first) return std::nullopt;
    if (contents.has_additions())  // by a job that was killed since the first look
        return core::fail(Errc::invalid_state, "the job that wrote these subfiles has not completed the set");
    if (auto status = check_locks(directory); !status) return tl::unexpected(status.error());
    if (facts.groups > most_groups || first > UINT32_MAX - facts.groups)
        return core::fail(Errc::unsupported, "the set would have too many subfiles");
    if (auto status = remove_unknown(directory, first); !status) return tl::unexpected(status.error());
    if (auto status = write_note(*note, identity, generation, first, facts); !status)
        return tl::unexpected(status.error());
    return std::move(*note);
}

void give_back_lock(int directory, SetContents const& contents)
{
    if (!contents.note_keeps_numbers()) (void)::unlinkat(directory, writer_name, 0);
}

core::Status complete_set(int directory, SetId const& identity, bool durable, WriterOfSet writer)
{
    SetContents contents(directory, identity);
    bool const on_tier = writer == WriterOfSet::closes_on_tier || writer == WriterOfSet::died_on_tier;
    if (writer == WriterOfSet::died || writer == WriterOfSet::died_on_tier) contents.leave_out_lost(on_tier);
    if (auto status = contents.refresh(); !status) return status;
    if (contents.writer().generation < std::max<std::uint64_t>(contents.head().generation, 1)) {
        bool any = !contents.has_index();  // journals of a writer of whom nothing is known
        auto const listed = each_name(directory, [&](auto const& name) { any = any || number_in(name, "journal."); });
        if (!listed || !any) return listed;
        return core::fail(Errc::io, "the note about who writes these subfiles is damaged or missing");
    }
    bool const is_new = contents.writer().generation > contents.head().generation;
    auto const records = is_new ? contents.map().records(identity) : std::vector<std::byte>();
    ExtentMap now;  // an index that cannot be read never replaces what there is
    if (auto status = is_new ? add_all(now, records, identity) : core::Status(); !status) return status;
    auto const& map = is_new ? now : contents.map();
    std::vector<std::string> old;
    auto const listed = each_name(directory, [&](std::string const& name) {
        auto const number = number_in(name, "subfile.");
        auto const draining = number_in(name, "draining.");
        bool const of_none =
            (number && !map.subfiles().contains(*number)) || (draining && !map.subfiles().contains(*draining));
        if (number_in(name, "journal.") || of_none) old.push_back(name);
    });
    if (!listed) return listed;
    if (is_new) {
        bool const removes = std::any_of(old.begin(), old.end(), [](auto const& name) { return name[0] == 's'; });
        auto const index = make_index(directory, contents, records, map, on_tier);
        auto const status = replace_index_in_little_room(directory, index, durable || removes || contents.has_index(),
                                                         contents, on_tier);
        if (!status) return status;
    }
    // What is left of this after a crash is known to be old, and the next completion removes it.
    for (auto const& name : old) (void)::unlinkat(directory, name.c_str(), 0);
    (void)::unlinkat(directory, writer_name, 0);
    return durable ? sync(directory, "the directory of subfiles") : core::Status();
}

core::Status sync_complete_set(std::string const& directory, SetId const& identity)
{
    auto const opened = open_directory(directory);
    if (!opened) return tl::unexpected(opened.error());
    SetContents contents(opened->get(), identity);
    auto status = contents.refresh();
    auto const add = [&](std::string const& name) {
        if (!status) return;
        auto const file = open_in(opened->get(), name.c_str(), O_RDONLY);
        bool const elsewhere = !file && file.error().code == Errc::not_found;
        if (!elsewhere) status = file ? sync(file->get(), name.c_str()) : tl::unexpected(file.error());
    };
    add(index_name);
    add(rest_name);
    for (auto const& [number, bytes] : contents.map().subfiles()) add(subfile_name(number));
    return status;
}

core::Status remove_set(std::string const& directory)
{
    auto const opened = open_directory(directory);
    if (!opened) return opened.error().code == Errc::not_found ? core::Status() : tl::unexpected(opened.error());
    if (auto status = remove_files(opened->get()); !status) return status;
    (void)::rmdir(directory.c_str());  // somebody may have put files of his own there
    return {};
}

core::Status remove_set_of(std::string const& directory, SetId const& identity, std::uint64_t inode)
{
    auto const opened = open_directory(directory);
    if (!opened) return opened.error().code == Errc::not_found ? core::Status() : tl::unexpected(opened.error());
    if (is_needed(opened->get(), directory, inode)) return {};
    SetContents contents(opened->get(), identity);
    auto const status = contents.refresh();
    bool const of_another = !status && status.error().code == Errc::mismatch;
    return of_another ? core::Status() : remove_set(directory);
}

core::Status check_own_directory(std::string const& path, Stub const& stub, int fd)
{
    struct stat file = {};
    auto const name = beside(path, stub.directory);
    auto const directory = open_directory(name);
    if (!directory || ::fstat(fd, &file) != 0 || !is_needed(directory->get(), name, file.st_ino)) return {};
    return core::fail(Errc::invalid_state,
                      fmt::format("{} is a copy of the stub of another file, to which {} belongs: name that file, or "
                                  "copy the directory, too",
                                  core::printable(path), core::printable(name)));
}

core::Status check_usable(std::string const& path, Stub const& stub)
{
    auto const directory = open_directory(beside(path, stub.directory));
    if (!directory) return tl::unexpected(directory.error());
    SetContents contents(directory->get(), stub.identity);
    if (auto status = contents.refresh(); !status) return status;
    if (contents.state() == SetState::interrupted)
        return core::fail(Errc::invalid_state, interrupted_text(path, contents.writer()));
    return {};
}

}  // namespace tapioca::subfile
