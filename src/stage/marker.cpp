#include "stage/marker.hpp"

#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "stage/marker_text.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

namespace {

/// Turns any text into a single line.
std::string in_one_line(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return text;
}

/// Gives an unnamed file its name. Fails if the name exists. Returns false if the system does not support this.
core::Result<bool> name_it(Descriptor const& file, std::string const& path)
{
    auto const self = fmt::format("/proc/self/fd/{}", file.get());
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno == EEXIST) return core::fail_errno(errno, path);
    return false;
}

/// Gives a file another name. Fails if that name exists.
core::Status give_name(Descriptor const& file, std::string const& from, std::string const& to)
{
    int error = ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    struct stat found = {};
    bool const no_links = error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
    if (no_links) {
        error = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
        if ((error == EINVAL || error == ENOSYS) && ::lstat(to.c_str(), &found) != 0)
            error = ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    }
    (void)::unlink(from.c_str());
    if (error != 0) return core::fail_errno(error, to);
    if (!is_named(file, to)) return core::fail(Errc::io, to + ": somebody has put another file in its place");
    return {};
}

core::Status put_slot(Descriptor const& file, std::size_t number, Noted const& noted, bool durable)
{
    auto const slot = slot_of(noted);
    auto const offset = marker_first_line.size() + number * marker_slot_bytes;
    if (auto status = write_all(file.get(), offset, std::as_bytes(std::span(slot))); !status) return status;
    if (durable && core::uninterrupted([&] { return ::fdatasync(file.get()); }) != 0)
        return core::fail_errno(errno, "the marker");
    return {};
}

}  // namespace

std::string log_name(StageMapping mapping, std::uint32_t number)
{
    return fmt::format("{}{}", mapping == StageMapping::process ? "rank" : "node", number);
}

std::vector<LogPlace> Marker::logs_of(NodeEntry const& node) const
{
    std::vector<LogPlace> places;
    if (mapping == StageMapping::node)
        places.push_back({node.directory, log_name(mapping, static_cast<std::uint32_t>(&node - nodes.data()))});
    else
        for (auto const rank : node.ranks) places.push_back({node.directory, log_name(mapping, rank)});
    for (auto const rank : node.ranks) {
        auto const place = overflow_place(target, rank);
        if (is_ours(place.meta())) places.push_back(place);
    }
    return places;
}

LogPlace overflow_place(std::string const& target, std::uint32_t rank)
{
    std::filesystem::path const path = resolved(target);
    return {path.parent_path().string(), fmt::format("{}.tapioca.rank{}", path.filename().string(), rank)};
}

LogPlace unfinished_place(LogPlace const& overflow)
{
    return {overflow.directory, overflow.name + ".new"};
}

std::string resolved(std::string const& target)
{
    std::error_code error;
    auto const path = std::filesystem::weakly_canonical(target, error);
    return error ? target : path.string();
}

std::string marker_path(std::string const& target)
{
    return resolved(target) + ".tapioca";
}

bool has_marker(std::string const& target)
{
    struct stat found = {};
    return ::lstat(marker_path(target).c_str(), &found) == 0;
}

bool may_have_marker(std::string const& target)
{
    return has_marker(target) || (errno != ENOENT && errno != ENOTDIR);
}

bool is_staged_now(std::string const& target)
{
    auto const file = open_private(marker_path(target), false);
    return file && is_held(*file);
}

std::string what_to_do(std::string const& target)
{
    if (is_staged_now(target))
        return fmt::format("{}: a program that is running, perhaps this one, has it open with a stage", target);
    return fmt::format(
        "{} says that staged data is still in a log: run `tapioca log recover {}`, or `tapioca log "
        "discard {}` to lose it",
        marker_path(target), core::shell_word(target), core::shell_word(target));
}

core::Result<Marker> read_marker(std::string const& target)
try {
    auto const path = marker_path(target);
    auto const file = open_private(path, false);
    if (!file) return tl::unexpected(file.error());
    auto const size = size_of(file->get(), path);
    if (!size) return tl::unexpected(size.error());
    if (*size < least_marker_bytes || *size > (std::uint64_t{1} << 30))
        return core::fail(Errc::io, path + ": not a marker of this version");
    std::string text(*size, '\0');
    if (auto status = read_all(file->get(), 0, std::as_writable_bytes(std::span(text))); !status)
        return tl::unexpected(status.error());
    auto marker = marker_in(text);
    if (!marker) return core::fail(Errc::io, path + ": " + in_one_line(marker.error().text));
    marker->target = resolved(target);
    return marker;
} catch (std::bad_alloc const& error) {
    return core::fail(Errc::io, fmt::format("{}: {}", marker_path(target), error.what()));
}

core::Result<Descriptor> create_marker(Marker const& marker, bool durable)
{
    // The file gets its name when it is complete, because the job may be killed in between.
    auto const text = text_of(marker);
    if (!text) return tl::unexpected(text.error());
    auto const path = marker_path(marker.target);
    auto const fill = [&](Descriptor const& file) -> core::Status {
        (void)hold_alone(file);
        auto status = write_all(file.get(), 0, std::as_bytes(std::span(*text)));
        if (status && durable && core::uninterrupted([&] { return ::fsync(file.get()); }) != 0)
            status = core::fail_errno(errno, path);
        return status;
    };
    auto const directory = std::filesystem::path(path).parent_path().string();
    Descriptor file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    core::Status status;
    bool named = false;
    if (file) {
        status = fill(file);
        auto const given = status ? name_it(file, path) : core::Result<bool>(false);
        if (!given) return tl::unexpected(given.error());
        named = *given;
    }
    if (status && !named) {  // not supported by every file system: use a name that nobody can guess
        auto const first_name = path + "." + to_hex(marker.identity);
        auto made = create_private(first_name);
        if (!made) return made;
        file = std::move(*made);
        status = fill(file);
        if (status)
            status = give_name(file, first_name, path);
        else
            (void)::unlink(first_name.c_str());
    }
    if (status && durable) {
        status = target::sync_directory_of(path);
        if (!status) (void)::unlink(path.c_str());  // nobody will write to the logs that it names
    }
    if (!status) return tl::unexpected(status.error());
    return file;
}

core::Status note(Descriptor const& file, Noted const& noted, bool durable)
{
    return put_slot(file, noted.generation % 2, noted, durable);
}

core::Result<HeldMarker> keep_held(Descriptor const& file)
{
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, "the marker");
    auto page = MappedFile::of(file.get(), 0, marker_first_line.size(), false);
    if (!page) return tl::unexpected(page.error());
    return HeldMarker{std::move(*page), found.st_ino};
}

/// Uses a write and not a store through the mapping, so that a full disk, or a marker that somebody has truncated, is
/// an error and not a signal.
core::Status note(HeldMarker const& held, std::string const& target, Noted const& noted, bool durable)
{
    auto const path = marker_path(target);
    auto const file = open_private(path, true);
    if (!file) return tl::unexpected(file.error());
    struct stat found = {};
    if (::fstat(file->get(), &found) != 0) return core::fail_errno(errno, path);
    if (found.st_ino != held.inode) return core::fail(Errc::io, path + ": is another file by now");
    return note(*file, noted, durable);
}

void let_others_in(std::string const& target)
{
    auto const marker = read_marker(target);
    auto const file = open_private(marker_path(target), true);
    Descriptor const opened(core::uninterrupted([&] { return ::open(target.c_str(), O_RDONLY | O_CLOEXEC); }));
    auto const now = facts_of(opened.get());
    bool const concerned = marker && marker->noted.state != Noted::State::nothing && file && now && !is_held(*file);
    // The first such program counts; later ones find the file as changed by the first.
    if (!concerned || marker->others.state == Noted::State::others) return;
    (void)put_slot(*file, marker_slots - 1, {0, 1, Noted::State::others, *now}, false);
}

core::Status forget_others(Descriptor const& file)
{
    return put_slot(file, marker_slots - 1, {}, false);
}

core::Status remove_marker(std::string const& target)
{
    auto const path = marker_path(target);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return core::fail_errno(errno, path);
    return {};
}

core::Status keep_marker_away(std::string const& target)
{
    return target::sync_directory_of(marker_path(target));
}

}  // namespace tapioca::stage
