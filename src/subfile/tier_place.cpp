#include "subfile/tier_place.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <tuple>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "stage/log_files.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

namespace {

constexpr std::uint32_t catalogue_version = 1;
constexpr std::string_view place_begins = "tapioca-";
constexpr std::string_view place_ends = ".set";
constexpr std::string_view new_catalogue_begins = "catalogue.new-";

/// An open directory of a set, and whose it is.
struct OpenPlace {
    core::Descriptor directory;
    struct stat facts;
};

tl::unexpected<core::Failure> refuse(std::string const& path, char const* reason, Errc code = Errc::permission)
{
    return core::fail(code, core::printable(path) + ": " + reason);
}

core::Result<OpenPlace> open_place(std::string const& path)
{
    OpenPlace place = {};
    place.directory = core::Descriptor(
        core::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    struct stat named = {};
    bool const in_the_way = !place.directory && (errno == ENOTDIR || errno == ELOOP);
    if (in_the_way && ::lstat(path.c_str(), &named) == 0)
        return refuse(path, "is in the way: it is not a directory of a set's subfiles");
    if (!place.directory || ::fstat(place.directory.get(), &place.facts) != 0)
        return core::fail_errno(errno, core::printable(path));
    if ((place.facts.st_mode & 002) != 0)
        return refuse(path, "everybody may write to it, so its subfiles could be anybody's: it is not used");
    return place;
}

/// Whether the directory was made by somebody who could have written to the open file `like`; -1: by this user. What
/// root has made is always trusted.
core::Status check_maker(std::string const& path, struct stat const& place, int like)
{
    struct stat file = {};
    if (place.st_uid == ::geteuid() || place.st_uid == 0) return {};
    if (like >= 0 && ::fstat(like, &file) != 0) return core::fail_errno(errno, "the file of the subfiles");
    bool const group = (file.st_mode & 020) != 0 && file.st_gid == place.st_gid;
    if (like >= 0 && (place.st_uid == file.st_uid || group || (file.st_mode & 002) != 0)) return {};
    return core::fail(Errc::permission, fmt::format("{}: belongs to user {}, who may not write to the file: it is not "
                                                    "used",
                                                    core::printable(path), place.st_uid));
}

std::uint64_t checksum_of(CatalogueEntry const& entry)
{
    return stage::checksum_of(&entry, offsetof(CatalogueEntry, checksum));
}

template <std::size_t size>
bool ends(char const (&text)[size])
{
    return std::memchr(text, 0, size) != nullptr;
}

/// What is wrong with an entry; nullptr: nothing.
char const* fault_of(CatalogueEntry const& entry)
{
    if (std::memcmp(entry.magic, catalogue_magic, sizeof entry.magic) != 0) return "it does not begin like one";
    if (entry.checksum != checksum_of(entry)) return "its checksum does not match";
    if (!ends(entry.host) || !ends(entry.job) || !ends(entry.tier) || !ends(entry.path)) return "a text has no end";
    if (entry.path[0] != '/') return "it names no file";
    return nullptr;
}

/// Fails with not_found if there is none.
core::Result<CatalogueEntry> read_entry(OpenPlace const& place, std::string const& path, SetId const& identity)
{
    auto const file = open_in(place.directory.get(), catalogue_name, O_RDONLY);
    if (!file && file.error().sys_errno == ENOENT) return refuse(path, "has no catalogue entry", Errc::not_found);
    if (!file) return core::fail(file.error().code, core::printable(path) + "/" + file.error().text);
    CatalogueEntry entry = {};
    struct stat facts = {};
    auto const damaged = [&](char const* reason) {
        return core::fail(Errc::io,
                          fmt::format("{}: the catalogue entry is damaged: {}", core::printable(path), reason));
    };
    if (::fstat(file->get(), &facts) != 0) return core::fail_errno(errno, core::printable(path));
    if (!S_ISREG(facts.st_mode)) return damaged("it is not a plain file");
    if (facts.st_size < static_cast<off_t>(offsetof(CatalogueEntry, identity))) return damaged("it is too short");
    auto const bytes = std::min(sizeof entry, static_cast<std::size_t>(facts.st_size));
    auto const read =
        core::read_all(file->get(), 0, std::as_writable_bytes(std::span(&entry, 1)).first(bytes), "the catalogue");
    if (!read) return tl::unexpected(read.error());
    bool const is_one = std::memcmp(entry.magic, catalogue_magic, sizeof entry.magic) == 0;
    if (is_one && entry.version != catalogue_version)
        return core::fail(Errc::unsupported, fmt::format("{}: the catalogue entry has version {}, and this program "
                                                         "reads version {}",
                                                         core::printable(path), entry.version, catalogue_version));
    if (facts.st_size != static_cast<off_t>(sizeof entry) || (is_one && entry.bytes != sizeof entry))
        return damaged("it has the wrong size");
    if (auto const* const fault = fault_of(entry)) return damaged(fault);
    if (entry.identity != identity) return refuse(path, "the catalogue entry is of another set", Errc::mismatch);
    return entry;
}

core::Result<std::vector<std::uint32_t>> subfiles_in(int directory)
{
    std::vector<std::uint32_t> numbers;
    auto const status = each_name(directory, [&](std::string const& name) {
        if (auto const number = number_in(name, "subfile."); number && name == subfile_name(*number))
            numbers.push_back(*number);
    });
    if (!status) return tl::unexpected(status.error());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

core::Result<TierPlace> read_place(OpenPlace const& place, std::string const& path, SetId const& identity)
{
    auto const entry = read_entry(place, path, identity);
    if (!entry) return tl::unexpected(entry.error());
    auto numbers = subfiles_in(place.directory.get());
    if (!numbers) return tl::unexpected(numbers.error());
    return TierPlace{path, *entry, place.facts.st_uid, place.facts.st_ino, std::move(*numbers)};
}

/// Also its directory's inode, and the checksum. Fails if the path is too long.
core::Status put_file(CatalogueEntry& entry, std::string const& given)
{
    std::error_code error;
    auto const file = std::filesystem::absolute(real_path(given), error).string();
    if (error) return core::fail_errno(error.value(), given);
    if (file.size() >= sizeof entry.path)
        return core::fail(Errc::unsupported, "the name of the file is too long for the catalogue");
    put_text(entry.path, file);
    struct stat around = {};
    entry.around = ::stat(file.substr(0, file.rfind('/') + 1).c_str(), &around) == 0 ? around.st_ino : 0;
    entry.checksum = checksum_of(entry);
    return {};
}

core::Result<CatalogueEntry> new_entry(SetId const& identity, PlaceFacts const& facts)
{
    CatalogueEntry entry = {};
    if (facts.tier.size() > longest_tier)
        return core::fail(Errc::unsupported, "the name of the tier is too long for the catalogue");
    std::memcpy(entry.magic, catalogue_magic, sizeof entry.magic);
    entry.version = catalogue_version;
    entry.bytes = sizeof entry;
    entry.identity = identity;
    entry.place = stage::new_identity();
    entry.made = static_cast<std::uint64_t>(std::time(nullptr));
    entry.process = static_cast<std::uint64_t>(::getpid());
    put_text(entry.host, core::host_name());
    put_text(entry.job, job_name());
    put_text(entry.tier, facts.tier);
    if (auto status = put_file(entry, facts.file); !status) return tl::unexpected(status.error());
    return entry;
}

/// Gives the new file its name unless there is one. Not all file systems have hard links.
core::Status name_catalogue(int directory, std::string const& from)
{
    if (::linkat(directory, from.c_str(), directory, catalogue_name, 0) == 0 || errno == EEXIST) return {};
    if (::renameat2(directory, from.c_str(), directory, catalogue_name, RENAME_NOREPLACE) == 0 || errno == EEXIST)
        return {};
    if (::faccessat(directory, catalogue_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return {};
    if (::renameat(directory, from.c_str(), directory, catalogue_name) == 0) return {};
    return core::fail_errno(errno, "naming the catalogue entry");
}

core::Status write_entry(int directory, CatalogueEntry const& entry)
{
    auto const name = std::string(new_catalogue_begins) + stage::to_hex(entry.place);
    auto const file = open_in(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL);
    if (!file) return tl::unexpected(file.error());
    auto status = core::write_all(file->get(), 0, std::as_bytes(std::span(&entry, 1)), "the catalogue entry");
    if (status) status = sync(file->get(), "the catalogue entry");
    if (status) status = name_catalogue(directory, name);
    (void)::unlinkat(directory, name.c_str(), 0);
    return status ? sync(directory, "the directory on the tier") : status;
}

/// Writes the entry into a directory that has none, or that somebody else is about to complete.
core::Status complete_place(std::string const& path, SetId const& identity, PlaceFacts const& facts, int like)
{
    auto const place = open_place(path);
    if (!place) return tl::unexpected(place.error());
    if (auto status = check_maker(path, place->facts, like); !status) return status;
    auto const found = read_entry(*place, path, identity);
    if (found) return {};
    if (found.error().code != Errc::not_found) return tl::unexpected(found.error());
    auto const others = subfiles_in(place->directory.get());
    if (!others) return tl::unexpected(others.error());
    if (!others->empty()) return tl::unexpected(found.error());
    if (auto status = like < 0 ? core::Status() : give_mode(place->directory.get(), like, 002); !status) return status;
    auto const entry = new_entry(identity, facts);
    return entry ? write_entry(place->directory.get(), *entry) : tl::unexpected(entry.error());
}

std::optional<SetId> identity_in(std::string_view name)
{
    if (!name.starts_with(place_begins) || !name.ends_with(place_ends)) return std::nullopt;
    name.remove_prefix(place_begins.size());
    return parse_identity(name.substr(0, name.size() - place_ends.size()));
}

/// Removes a directory without subfiles. If a job puts one there at this moment, the entry is written again.
core::Status remove_empty_place(int directory, std::string const& place)
{
    auto const file = open_in(directory, catalogue_name, O_RDONLY);
    CatalogueEntry entry = {};
    bool const known =
        file && core::read_all(file->get(), 0, std::as_writable_bytes(std::span(&entry, 1)), "the catalogue entry");
    auto status = each_name(directory, [&](std::string const& name) {
        if (name.starts_with(new_catalogue_begins) || number_in(name, "drained."))
            (void)::unlinkat(directory, name.c_str(), 0);
    });
    if (::unlinkat(directory, catalogue_name, 0) != 0 && errno != ENOENT)
        core::keep_first(status, core::fail_errno(errno, core::printable(place) + "/" + catalogue_name));
    if (::rmdir(place.c_str()) == 0) return status;
    auto const now = subfiles_in(directory);  // or somebody has put files of his own there
    if (known && now && !now->empty()) core::keep_first(status, write_entry(directory, entry));
    return status;
}

}  // namespace

std::string drained_name(std::uint32_t number)
{
    return fmt::format("drained.{}", number);
}

std::string tier_place(std::string const& tier_directory, SetId const& identity)
{
    return fmt::format("{}/{}{}{}", tier_directory, place_begins, stage::to_hex(identity), place_ends);
}

core::Status make_tier_place(std::string const& path, SetId const& identity, PlaceFacts const& facts, int like)
{
    constexpr int most_attempts = 100;  // somebody may remove it again and again
    core::Status status;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
            return core::fail_errno(errno, "making a directory for subfiles, " + core::printable(path));
        status = complete_place(path, identity, facts, like);
        if (status || status.error().sys_errno != ENOENT) return status;
    }
    return status;
}

void rename_entry(TierPlace const& place, std::string const& file)
{
    auto const opened = open_place(place.path);
    auto entry = place.entry;
    std::memset(entry.path, 0, sizeof entry.path);
    if (!opened || !put_file(entry, file)) return;
    auto const directory = opened->directory.get();
    auto const name = std::string(new_catalogue_begins) + stage::to_hex(stage::new_identity());
    auto const written = open_in(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL);
    bool const whole = written &&
                       core::write_all(written->get(), 0, std::as_bytes(std::span(&entry, 1)), "the catalogue entry") &&
                       sync(written->get(), "the catalogue entry");
    if (!whole || ::renameat(directory, name.c_str(), directory, catalogue_name) != 0)
        (void)::unlinkat(directory, name.c_str(), 0);
}

core::Result<std::optional<TierPlace>> find_tier_place(std::string const& path, SetId const& identity, int like)
{
    auto const place = open_place(path);
    if (!place && place.error().code == Errc::not_found) return std::nullopt;
    if (!place) return tl::unexpected(place.error());
    if (auto const status = check_maker(path, place->facts, like); !status) return tl::unexpected(status.error());
    auto found = read_place(*place, path, identity);
    if (found) return std::move(*found);
    auto const others =
        found.error().code == Errc::not_found ? subfiles_in(place->directory.get()) : tl::unexpected(found.error());
    if (others && others->empty()) return std::nullopt;  // somebody is just making or removing it
    return tl::unexpected(found.error());
}

core::Result<Catalogue> read_catalogue(std::string const& tier_directory)
{
    core::Descriptor const tier(
        core::uninterrupted([&] { return ::open(tier_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!tier) return core::fail_errno(errno, core::printable(tier_directory));
    Catalogue catalogue;
    auto const status = each_name(tier.get(), [&](std::string const& name) {
        auto const identity = identity_in(name);
        if (!identity) return;
        auto const path = tier_place(tier_directory, *identity);
        auto const opened = open_place(path);
        if (!opened && opened.error().sys_errno == ENOENT) return;  // just removed
        auto place = opened ? read_place(*opened, path, *identity) : tl::unexpected(opened.error());
        auto const others = opened ? subfiles_in(opened->directory.get()) : tl::unexpected(opened.error());
        if (place)
            catalogue.places.push_back(std::move(*place));
        else if (place.error().code == Errc::not_found && others && others->empty())
            catalogue.unfinished.push_back(path);
        else
            catalogue.damaged.push_back(place.error().text);
    });
    if (!status) return tl::unexpected(status.error());
    std::sort(catalogue.places.begin(), catalogue.places.end(), [](TierPlace const& a, TierPlace const& b) {
        return std::tie(a.entry.made, a.path) < std::tie(b.entry.made, b.path);
    });
    std::sort(catalogue.damaged.begin(), catalogue.damaged.end());
    return catalogue;
}

core::Result<core::Descriptor> open_on_tier(std::string const& place, std::uint32_t number, int flags)
{
    auto const opened = open_place(place);
    if (!opened) return tl::unexpected(opened.error());
    auto const path = place + "/" + subfile_name(number);
    auto file = open_in(opened->directory.get(), subfile_name(number).c_str(), flags & ~O_TRUNC);
    if (!file && file.error().sys_errno == ELOOP) return refuse(path, "is not a plain file", Errc::io);
    if (!file) return core::fail_errno(file.error().sys_errno, core::printable(path));
    struct stat facts = {};
    if (::fstat(file->get(), &facts) != 0) return core::fail_errno(errno, core::printable(path));
    if (!S_ISREG(facts.st_mode)) return refuse(path, "is not a plain file", Errc::io);
    // A directory that is not root's may have hard links to anything.
    if (::geteuid() == 0 && facts.st_uid != opened->facts.st_uid)
        return refuse(path, "does not belong to the owner of its directory");
    if ((flags & O_TRUNC) != 0 && core::uninterrupted([&] { return ::ftruncate(file->get(), 0); }) != 0)
        return core::fail_errno(errno, core::printable(path));
    return file;
}

core::Status remove_from_tier(std::string const& place, std::vector<std::uint32_t> const& numbers, EmptyPlace empty)
{
    auto const opened = open_place(place);
    if (!opened && opened.error().code == Errc::not_found) return {};
    if (!opened) return tl::unexpected(opened.error());
    auto const directory = opened->directory.get();
    core::Status status;
    for (auto const number : numbers) {
        if (::unlinkat(directory, subfile_name(number).c_str(), 0) != 0 && errno != ENOENT)
            core::keep_first(status, core::fail_errno(errno, core::printable(place) + "/" + subfile_name(number)));
        else
            (void)::unlinkat(directory, drained_name(number).c_str(), 0);
    }
    if (empty == EmptyPlace::kept) return status;
    auto const left = subfiles_in(directory);
    if (!left) core::keep_first(status, tl::unexpected(left.error()));
    return status && left->empty() ? remove_empty_place(directory, place) : status;
}

core::Status remove_tier_place(std::string const& place)
{
    auto const opened = open_place(place);
    if (!opened && opened.error().code == Errc::not_found) return {};
    if (!opened) return tl::unexpected(opened.error());
    auto const numbers = subfiles_in(opened->directory.get());
    return numbers ? remove_from_tier(place, *numbers) : tl::unexpected(numbers.error());
}

std::string job_name()
{
    for (auto const* const name :
         {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "PJM_JOBID", "OAR_JOB_ID", "JOB_ID"})
        if (auto const* const job = std::getenv(name); job && *job) return job;
    return {};
}

}  // namespace tapioca::subfile
