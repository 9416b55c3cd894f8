#include "stage/marker.hpp"

#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/interrupt.hpp"
#include "machine/storage.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

namespace {

using Json = nlohmann::ordered_json;

// The first line says what it is. Two lines that follow take turns in telling how far the log was flushed and what the
// file was then, so that one of them is whole at any time; a third tells of programs that were let past the marker;
// then comes JSON.
constexpr std::string_view first_line = "tapioca stage 2\n";
constexpr std::size_t slot_bytes = 145;
constexpr std::size_t slots = 3;
// Version 1 has two lines with an epoch and a checksum only.
constexpr std::string_view first_line_of_1 = "tapioca stage 1\n";
constexpr std::size_t slot_bytes_of_1 = 38;
static_assert(first_line.size() == first_line_of_1.size());

std::string slot_of(Noted const& noted)
{
    auto const& file = noted.file;
    auto const text = fmt::format("{:020} {:020} {} {:020} {:020} {:020} {:020} ", noted.epoch, noted.generation,
                                  static_cast<char>(noted.state), file.inode, file.size, file.born_ns, file.changed_ns);
    return fmt::format("{}{:016x}\n", text, checksum_of(text.data(), text.size()));
}

std::string slot_of_1(std::uint64_t epoch)
{
    return fmt::format("{:020} {:016x}\n", epoch, checksum_of(&epoch, sizeof epoch));
}

std::uint64_t digits_in(std::string_view text)
{
    std::uint64_t value = 0;
    for (char const c : text) {
        if (c < '0' || c > '9') return 0;
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
}

/// State::nothing if it is not whole.
Noted noted_in(std::string_view slot)
{
    auto const number = [&](std::size_t at) { return digits_in(slot.substr(at, 20)); };
    auto const state = static_cast<Noted::State>(slot[42]);
    Noted noted{number(0), number(21), state, {number(44), number(65), number(86), number(107)}};
    bool const known =
        state == Noted::State::left || state == Noted::State::recovering || state == Noted::State::others;
    return known && slot == slot_of(noted) ? noted : Noted{};
}

std::uint64_t epoch_in_1(std::string_view slot)
{
    auto const epoch = digits_in(slot.substr(0, 20));
    return slot == slot_of_1(epoch) ? epoch : 0;
}

/// How long after its last known moment a job may have changed the file: the time is noted just before. What a host has
/// in memory of a file that another machine serves gets there, and its time, when the host finds time for it.
constexpr std::uint64_t grace_ns = 1'000'000'000;
constexpr std::uint64_t remote_grace_ns = 30'000'000'000;

std::string to_text(std::uint64_t time_ns)
{
    auto const seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
    std::tm local = {};
    char text[64] = {};
    if (!::localtime_r(&seconds, &local) || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) == 0)
        return fmt::format("{} s after 1970", seconds);
    return text;
}

core::Result<Identity> identity_from(std::string const& hex)
{
    Identity identity = {};
    if (hex.size() != 2 * identity.size()) return core::fail(Errc::io, "bad identity");
    for (std::size_t i = 0; i < identity.size(); ++i)
        identity[i] = static_cast<std::byte>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    if (to_hex(identity) != hex) return core::fail(Errc::io, "bad identity");
    return identity;
}

/// A text that is one line, whatever it was.
std::string in_one_line(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return text;
}

/// A rank, or how many there are; throws what read_marker() catches.
std::uint32_t number_from(Json const& json)
{
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > INT32_MAX)
        throw std::out_of_range("a number of ranks that no job has");
    return json.get<std::uint32_t>();
}

/// Every rank has one node, and the logs are where a job of this identity puts them.
core::Status check(Marker const& marker)
{
    auto const directory = "tapioca-" + to_hex(marker.identity);
    std::set<std::uint32_t> seen;
    for (auto const& node : marker.nodes) {
        std::filesystem::path const path(node.directory);
        if (!path.is_absolute() || path.filename() != directory)
            return core::fail(Errc::io, fmt::format("{}: no directory of this job's logs", node.directory));
        for (auto const rank : node.ranks)
            if (rank >= marker.ranks || !seen.insert(rank).second)
                return core::fail(Errc::io, fmt::format("rank {} has no place in it", rank));
        if (node.ranks.empty()) return core::fail(Errc::io, fmt::format("{}: a node without ranks", node.host));
    }
    if (marker.ranks == 0 || seen.size() != marker.ranks)
        return core::fail(Errc::io, fmt::format("it names {} of {} ranks", seen.size(), marker.ranks));
    return {};
}

}  // namespace

std::string log_name(Mapping mapping, std::uint32_t number)
{
    return fmt::format("{}{}", mapping == Mapping::process ? "rank" : "node", number);
}

std::vector<Place> Marker::logs_of(Node const& node) const
{
    std::vector<Place> places;
    if (mapping == Mapping::node)
        places.push_back({node.directory, log_name(mapping, static_cast<std::uint32_t>(&node - nodes.data()))});
    else
        for (auto const rank : node.ranks) places.push_back({node.directory, log_name(mapping, rank)});
    for (auto const rank : node.ranks) {
        auto const place = overflow_place(target, rank);
        if (is_ours(place.meta())) places.push_back(place);
    }
    return places;
}

Place overflow_place(std::string const& target, std::uint32_t rank)
{
    std::filesystem::path const path = resolved(target);
    return {path.parent_path().string(), fmt::format("{}.tapioca.rank{}", path.filename().string(), rank)};
}

Place unfinished_place(Place const& overflow)
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
        marker_path(target), target, target);
}

core::Result<Marker> read_marker(std::string const& target)
try {
    auto const path = marker_path(target);
    auto const file = open_private(path, false);
    if (!file) return tl::unexpected(file.error());
    auto const size = size_of(file->get(), path);
    if (!size) return tl::unexpected(size.error());
    auto const refuse = [&](std::string const& why) { return core::fail(Errc::io, path + ": " + in_one_line(why)); };
    if (*size < first_line.size() + 2 * slot_bytes_of_1 || *size > (std::uint64_t{1} << 30))
        return refuse("no marker of this version");
    std::string text(*size, '\0');
    if (auto status = read_all(file->get(), 0, std::as_writable_bytes(std::span(text))); !status)
        return tl::unexpected(status.error());
    bool const old = text.starts_with(first_line_of_1);
    auto const head = first_line.size() + (old ? 2 * slot_bytes_of_1 : slots * slot_bytes);
    if ((!old && !text.starts_with(first_line)) || text.size() < head) return refuse("no marker of this version");
    auto const json = Json::parse(text.substr(head));
    Marker marker;
    auto const identity = identity_from(json.at("identity").get<std::string>());
    if (!identity) return refuse(identity.error().text);
    marker.identity = *identity;
    marker.ranks = number_from(json.at("ranks"));
    auto const mapping = json.at("mapping").get<std::string>();
    if (mapping != "node" && mapping != "process") return refuse("bad mapping");
    marker.mapping = mapping == "node" ? Mapping::node : Mapping::process;
    marker.tier = json.at("tier").get<std::string>();
    (void)json.at("target").get<std::string>();  // for people: it may have another path on this host
    marker.target = resolved(target);
    for (auto const& json_node : json.at("nodes")) {
        auto& node = marker.nodes.emplace_back();
        node.host = json_node.at("host").get<std::string>();
        node.directory = json_node.at("directory").get<std::string>();
        for (auto const& rank : json_node.at("ranks")) node.ranks.push_back(number_from(rank));
    }
    if (auto const sound = check(marker); !sound) return refuse(sound.error().text);
    auto const slot = [&](std::size_t i) {
        auto const bytes = old ? slot_bytes_of_1 : slot_bytes;
        return std::string_view(text).substr(first_line.size() + i * bytes, bytes);
    };
    if (old) {
        marker.flushed = std::max(epoch_in_1(slot(0)), epoch_in_1(slot(1)));
        return marker;
    }
    for (std::size_t i = 0; i < 2; ++i)
        if (auto const noted = noted_in(slot(i)); noted.generation >= marker.noted.generation) marker.noted = noted;
    if (marker.noted.state != Noted::State::left && marker.noted.state != Noted::State::recovering)
        return refuse("it does not say how far the logs were flushed");
    if (auto const noted = noted_in(slot(2)); noted.state == Noted::State::others) marker.others = noted;
    marker.flushed = marker.noted.epoch;
    return marker;
} catch (std::exception const& error) {
    return core::fail(Errc::io, fmt::format("{}: {}", marker_path(target), in_one_line(error.what())));
}

/// Fails where a host's name or a path is no UTF-8, which JSON cannot hold. The target's path is there for people only.
static core::Result<std::string> text_of(Marker const& marker)
try {
    for (auto const& node : marker.nodes) (void)Json{marker.tier, node.host, node.directory}.dump();
    auto json = Json{{"identity", to_hex(marker.identity)},
                     {"ranks", marker.ranks},
                     {"mapping", marker.mapping == Mapping::node ? "node" : "process"},
                     {"tier", marker.tier},
                     {"target", marker.target},
                     {"nodes", Json::array()}};
    for (auto const& node : marker.nodes)
        json["nodes"].push_back({{"host", node.host}, {"directory", node.directory}, {"ranks", node.ranks}});
    return std::string(first_line) + slot_of({}) + slot_of(marker.noted) + slot_of({}) +
           json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
} catch (std::exception const& error) {
    return core::fail(Errc::unsupported, fmt::format("the marker cannot name where the logs are: {}", error.what()));
}

static core::Status sync_directory_of(std::string const& path)
{
    auto const directory = std::filesystem::path(path).parent_path().string();
    Descriptor const opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || core::uninterrupted([&] { return ::fsync(opened.get()); }) != 0)
        return core::fail_errno(errno, directory);
    return {};
}

/// Gives a file that has none its name. Fails if there is anything of that name. False if the system cannot do it.
static core::Result<bool> name_it(Descriptor const& file, std::string const& path)
{
    auto const self = fmt::format("/proc/self/fd/{}", file.get());
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno == EEXIST) return core::fail_errno(errno, path);
    return false;
}

/// Gives a file another name. Fails if there is anything of that name.
static core::Status give_name(Descriptor const& file, std::string const& from, std::string const& to)
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

core::Result<Descriptor> create_marker(Marker const& marker, bool durable)
{
    // It gets its name when it is whole: the job may be killed in between.
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
    if (status && !named) {  // not every file system can: under a name that nobody guesses
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
        status = sync_directory_of(path);
        if (!status) (void)::unlink(path.c_str());  // nobody will write to the logs that it names
    }
    if (!status) return tl::unexpected(status.error());
    return file;
}

static core::Status put_slot(Descriptor const& file, std::size_t number, Noted const& noted, bool durable)
{
    auto const slot = slot_of(noted);
    auto const offset = first_line.size() + number * slot_bytes;
    if (auto status = write_all(file.get(), offset, std::as_bytes(std::span(slot))); !status) return status;
    if (durable && core::uninterrupted([&] { return ::fdatasync(file.get()); }) != 0)
        return core::fail_errno(errno, "the marker");
    return {};
}

core::Status note(Descriptor const& file, Noted const& noted, bool durable)
{
    return put_slot(file, noted.generation % 2, noted, durable);
}

core::Result<HeldMarker> keep_held(Descriptor const& file)
{
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, "the marker");
    auto page = Mapped::of(file.get(), 0, first_line.size(), false);
    if (!page) return tl::unexpected(page.error());
    return HeldMarker{std::move(*page), found.st_ino};
}

/// Written and not stored through the mapping: a full disk, or a marker that somebody has cut off, is no signal then.
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
    // Who came first counts: later ones find what it has written.
    if (!concerned || marker->others.state == Noted::State::others) return;
    (void)put_slot(*file, slots - 1, {0, 1, Noted::State::others, *now}, false);
}

core::Status forget_others(Descriptor const& file)
{
    return put_slot(file, slots - 1, {}, false);
}

core::Status remove_marker(std::string const& target, bool durable)
{
    auto const path = marker_path(target);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return core::fail_errno(errno, path);
    return durable ? sync_directory_of(path) : core::Status();
}

core::Result<FileFacts> facts_of(int fd)
{
    struct statx found = {};
    auto const ns = [](statx_timestamp const& time) {
        return time.tv_sec < 0 ? 0 : static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    };
    if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
        return core::fail_errno(errno, "looking at the file");
    return FileFacts{found.stx_ino, found.stx_size, (found.stx_mask & STATX_BTIME) ? ns(found.stx_btime) : 0,
                     ns(found.stx_mtime), machine::reach_of(fd) != machine::Reach::one_host};
}

std::int64_t clock_ahead_ns(Descriptor const& file)
{
    auto const facts = facts_of(file.get());
    return facts ? static_cast<std::int64_t>(facts->changed_ns - target::now_ns()) : 0;
}

std::optional<std::string> changed_by_others(Marker const& marker, FileFacts const& now, std::uint64_t touched_ns)
{
    auto const& was = marker.noted.file;
    if (now.inode != was.inode || (now.born_ns != 0 && was.born_ns != 0 && now.born_ns != was.born_ns))
        return fmt::format(
            "another file has its name since, of inode {} made on {}, where the staged one had inode {}; it "
            "was last changed on {}",
            now.inode, to_text(now.born_ns), was.inode, to_text(now.changed_ns));
    auto const& others = marker.others;
    if (others.state == Noted::State::others && now.changed_ns > others.file.changed_ns)
        return fmt::format("a program that went past the log has changed it on {}", to_text(now.changed_ns));
    bool const recovering = marker.noted.state == Noted::State::recovering;
    if (!recovering && now.changed_ns == was.changed_ns && now.size == was.size) return {};
    // Our own changes after that was noted.
    auto const last = recovering ? was.changed_ns : touched_ns;
    auto const until = last + (now.remote ? remote_grace_ns : grace_ns);
    if (last != 0 && (recovering || now.changed_ns >= was.changed_ns) && now.changed_ns <= until) return {};
    return fmt::format(
        "it was changed on {}, and has {} bytes; when it was last known to be changed by the job, on {}, it "
        "had {}",
        to_text(now.changed_ns), now.size, to_text(std::max(was.changed_ns, last)), was.size);
}

}  // namespace tapioca::stage
