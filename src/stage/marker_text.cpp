#include "stage/marker_text.hpp"

#include <filesystem>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "stage/checksum.hpp"

namespace tapioca::stage {

namespace {

using Json = nlohmann::ordered_json;

// Version 1 has two lines that contain only an epoch and a checksum.
constexpr std::string_view first_line_of_1 = "tapioca stage 1\n";
constexpr std::size_t slot_bytes_of_1 = 38;
static_assert(marker_first_line.size() == first_line_of_1.size());
static_assert(least_marker_bytes == first_line_of_1.size() + 2 * slot_bytes_of_1);

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

/// State::nothing if the line is not complete.
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

core::Result<OpeningId> identity_from(std::string const& hex)
{
    OpeningId identity = {};
    if (hex.size() != 2 * identity.size()) return core::fail(Errc::io, "bad identity");
    for (std::size_t i = 0; i < identity.size(); ++i)
        identity[i] = static_cast<std::byte>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    if (to_hex(identity) != hex) return core::fail(Errc::io, "bad identity");
    return identity;
}

/// A rank, or a number of ranks. Throws what marker_in() catches.
std::uint32_t number_from(Json const& json)
{
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > INT32_MAX)
        throw std::out_of_range("a number of ranks that no job has");
    return json.get<std::uint32_t>();
}

/// Checks that every rank is in one node, and that the logs are where a job of this identity puts them.
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

std::string slot_of(Noted const& noted)
{
    auto const& file = noted.file;
    auto const text = fmt::format("{:020} {:020} {} {:020} {:020} {:020} {:020} ", noted.epoch, noted.generation,
                                  static_cast<char>(noted.state), file.inode, file.size, file.born_ns, file.changed_ns);
    return fmt::format("{}{:016x}\n", text, checksum_of(text.data(), text.size()));
}

core::Result<std::string> text_of(Marker const& marker)
try {
    for (auto const& node : marker.nodes) (void)Json{marker.tier, node.host, node.directory}.dump();
    auto json = Json{{"identity", to_hex(marker.identity)},
                     {"ranks", marker.ranks},
                     {"mapping", marker.mapping == StageMapping::node ? "node" : "process"},
                     {"tier", marker.tier},
                     {"target", marker.target},
                     {"nodes", Json::array()}};
    for (auto const& node : marker.nodes)
        json["nodes"].push_back({{"host", node.host}, {"directory", node.directory}, {"ranks", node.ranks}});
    return std::string(marker_first_line) + slot_of({}) + slot_of(marker.noted) + slot_of({}) +
           json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
} catch (std::exception const& error) {
    return core::fail(Errc::unsupported, fmt::format("the marker cannot name where the logs are: {}", error.what()));
}

core::Result<Marker> marker_in(std::string const& text)
try {
    bool const old = text.starts_with(first_line_of_1);
    auto const head = marker_first_line.size() + (old ? 2 * slot_bytes_of_1 : marker_slots * marker_slot_bytes);
    if ((!old && !text.starts_with(marker_first_line)) || text.size() < head)
        return core::fail(Errc::io, "not a marker of this version");
    auto const json = Json::parse(text.substr(head));
    Marker marker;
    auto const identity = identity_from(json.at("identity").get<std::string>());
    if (!identity) return tl::unexpected(identity.error());
    marker.identity = *identity;
    marker.ranks = number_from(json.at("ranks"));
    auto const mapping = json.at("mapping").get<std::string>();
    if (mapping != "node" && mapping != "process") return core::fail(Errc::io, "bad mapping");
    marker.mapping = mapping == "node" ? StageMapping::node : StageMapping::process;
    marker.tier = json.at("tier").get<std::string>();
    (void)json.at("target").get<std::string>();  // for information only: the target may have another path on this host
    for (auto const& json_node : json.at("nodes")) {
        auto& node = marker.nodes.emplace_back();
        node.host = json_node.at("host").get<std::string>();
        node.directory = json_node.at("directory").get<std::string>();
        for (auto const& rank : json_node.at("ranks")) node.ranks.push_back(number_from(rank));
    }
    if (auto const sound = check(marker); !sound) return tl::unexpected(sound.error());
    auto const slot = [&](std::size_t i) {
        auto const bytes = old ? slot_bytes_of_1 : marker_slot_bytes;
        return std::string_view(text).substr(marker_first_line.size() + i * bytes, bytes);
    };
    if (old) {
        marker.flushed = std::max(epoch_in_1(slot(0)), epoch_in_1(slot(1)));
        return marker;
    }
    for (std::size_t i = 0; i < 2; ++i)
        if (auto const noted = noted_in(slot(i)); noted.generation >= marker.noted.generation) marker.noted = noted;
    if (marker.noted.state != Noted::State::left && marker.noted.state != Noted::State::recovering)
        return core::fail(Errc::io, "it does not say how far the logs were flushed");
    if (auto const noted = noted_in(slot(2)); noted.state == Noted::State::others) marker.others = noted;
    marker.flushed = marker.noted.epoch;
    return marker;
} catch (std::exception const& error) {
    return core::fail(Errc::io, error.what());
}

}  // namespace tapioca::stage
