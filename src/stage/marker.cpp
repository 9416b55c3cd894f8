#include "stage/marker.hpp"
#include "core/interrupt.hpp"

#include <filesystem>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace tapioca::stage {

namespace {

using Json = nlohmann::ordered_json;

// The first line says what it is; the two that follow take turns in telling how far the log was flushed, so that one of
// them is whole at any time; then comes JSON.
constexpr std::string_view first_line = "tapioca stage 1\n";
constexpr std::size_t slot_bytes = 38;  // epoch, checksum

std::string slot_of(std::uint64_t epoch)
{
    return fmt::format("{:020} {:016x}\n", epoch, checksum_of(&epoch, sizeof epoch));
}

std::uint64_t epoch_in(std::string_view slot)
{
    std::uint64_t epoch = 0;
    for (char const c : slot.substr(0, 20)) {
        if (c < '0' || c > '9') return 0;
        epoch = epoch * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return slot == slot_of(epoch) ? epoch : 0;
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
    auto const size = size_of(*file, path);
    if (!size) return tl::unexpected(size.error());
    auto const refuse = [&](std::string const& why) { return core::fail(Errc::io, path + ": " + in_one_line(why)); };
    constexpr auto head = first_line.size() + 2 * slot_bytes;
    if (*size < head || *size > (std::uint64_t{1} << 30)) return refuse("no marker of this version");
    std::string text(*size, '\0');
    if (auto status = read_all(file->get(), 0, std::as_writable_bytes(std::span(text))); !status)
        return tl::unexpected(status.error());
    if (!text.starts_with(first_line)) return refuse("no marker of this version");
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
    for (std::size_t i = 0; i < 2; ++i)
        marker.flushed = std::max(
            marker.flushed, epoch_in(std::string_view(text).substr(first_line.size() + i * slot_bytes, slot_bytes)));
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
    return std::string(first_line) + slot_of(0) + slot_of(0) +
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

core::Status note_flushed(Descriptor const& file, std::uint64_t epoch, std::uint64_t turn, bool durable)
{
    auto const slot = slot_of(epoch);
    auto const offset = first_line.size() + turn % 2 * slot_bytes;
    if (auto status = write_all(file.get(), offset, std::as_bytes(std::span(slot))); !status) return status;
    if (durable && core::uninterrupted([&] { return ::fdatasync(file.get()); }) != 0)
        return core::fail_errno(errno, "the marker");
    return {};
}

core::Status remove_marker(std::string const& target)
{
    auto const path = marker_path(target);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return core::fail_errno(errno, path);
    return {};
}

}  // namespace tapioca::stage
