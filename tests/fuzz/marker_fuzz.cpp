// Markers: whatever is in the file, it is a marker or refused in one line; and one that was written is read the same.
//
// The input: 'M', then fields of a marker, each ended by a line's end; or the file as it is.
#include "fuzz/scratch.hpp"
#include "stage/find_logs.hpp"
#include "stage/marker.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using stage::Marker;

/// What a job may have: any text but for a zero, and directories of its own name.
Marker marker_of(fuzz::Input& input)
{
    auto const text = [&] {
        auto const line = input.until('\n');
        return std::string(line.substr(0, line.find('\0')));
    };
    Marker marker;
    marker.mapping = input.pick(0, 1) == 0 ? StageMapping::process : StageMapping::node;
    marker.tier = text();
    for (auto left = 1 + input.pick(0, 3); left > 0; --left) {
        auto& node = marker.nodes.emplace_back();
        node.host = text();
        node.directory = "/" + text() + "/tapioca-" + stage::to_hex(marker.identity);
        for (auto ranks = 1 + input.pick(0, 3); ranks > 0; --ranks) node.ranks.push_back(marker.ranks++);
    }
    return marker;
}

void claim_same(Marker const& a, Marker const& b)
{
    claim(a.identity == b.identity && a.ranks == b.ranks && a.mapping == b.mapping && a.tier == b.tier, "it is kept");
    claim(std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                     [](auto const& x, auto const& y) {
                         return x.host == y.host && x.directory == y.directory && x.ranks == y.ranks;
                     }),
          "its nodes are kept");
}

void check_written(Marker marker)
{
    marker.target = fuzz::scratch().path() + "/again";
    claim(stage::remove_marker(marker.target).has_value(), "a marker can be removed");
    marker.noted = {0, 1, stage::Noted::State::left, {}};
    auto const file = stage::create_marker(marker, false);
    if (!file) return fuzz::claim_one_line(file.error());
    auto const again = stage::read_marker(marker.target);
    claim(again.has_value(), "what was written can be read", again ? "" : again.error().text);
    claim_same(marker, *again);
    claim(again->flushed == 0, "nothing is flushed yet");
    stage::Noted noted{7, 2, stage::Noted::State::left, {1, 2, 3, 4}};
    claim(stage::note(*file, noted, false).has_value(), "progress is noted");
    noted.epoch = 8;
    ++noted.generation;
    claim(stage::note(*file, noted, false).has_value(), "and again");
    auto const later = stage::read_marker(marker.target);
    claim(later && later->flushed == 8, "and told");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    fuzz::Input input(data, size);
    if (size > 0 && data[0] == 'M') {
        input.text(1);
        check_written(marker_of(input));
        return 0;
    }
    auto const target = fuzz::scratch().path() + "/target";
    fuzz::scratch().write("target.tapioca", std::as_bytes(std::span(data, size)));
    auto const marker = stage::read_marker(target);
    if (!marker) {
        fuzz::claim_one_line(marker.error());
        claim(marker.error().text.find(target) != std::string::npos, "a refusal names the file");
        return 0;
    }
    claim(marker->ranks > 0 && !marker->nodes.empty(), "a job has ranks");
    std::size_t ranks = 0;
    for (auto const& node : marker->nodes) {
        claim(node.directory.starts_with('/'), "logs are at an absolute path");
        ranks += node.ranks.size();
    }
    claim(ranks == marker->ranks, "each rank has a node");
    auto const found = stage::find_logs(target);
    claim(found && found->logs.size() >= marker->nodes.size(), "its logs can be looked for");
    check_written(*marker);
    return 0;
}
