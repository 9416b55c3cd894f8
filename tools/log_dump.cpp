// tapioca log dump: prints every request.
#include <algorithm>

#include <fmt/core.h>

#include "core/output.hpp"
#include "log_verbs.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;

Json to_json(tapioca::StagedRequest const& request, std::vector<tapioca::StagedPiece> const& pieces)
{
    Json json{{"rank", request.rank},   {"request", request.number},    {"generation", request.generation},
              {"epoch", request.epoch}, {"variable", request.variable}, {"bytes", request.bytes},
              {"begin", request.begin}, {"end", request.end},           {"in_target", request.in_target}};
    auto const& array = request.array;
    if (request.kind == tapioca::StagedKind::contiguous) json["kind"] = "contiguous";
    if (request.kind == tapioca::StagedKind::subarray) {
        json["kind"] = "subarray";
        json["shape"] = array.shape;
        json["start"] = array.start;
        json["count"] = array.count;
        json["stride"] = array.stride;
        json["element_size"] = array.element_size;
        json["file_offset"] = array.file_offset;
    }
    if (request.kind == tapioca::StagedKind::layout) {
        json["kind"] = "layout";
        for (auto const& piece : pieces) json["pieces"].push_back({piece.offset, piece.length, piece.position});
    }
    return json;
}

}  // namespace

int dump_logs(Words const& words)
{
    std::string path;
    bool json = false;
    CLI::App app("The heads of logs, and every request.");
    app.add_option("PATH", path, "a target, a directory of logs or a .meta file")->required();
    app.add_flag("--json", json, "as JSON, with the pieces [offset, length, position in the data] of layouts");
    if (auto const status = parse_log(app, "dump", words)) return *status;
    auto const all = look_at_all({path}, false);
    if (!all) return fail_log("dump", all.error().text);
    auto document = Json::array();
    int status = 0;
    for (auto const& facts : *all) {
        auto told = to_json(facts);
        if (!json)
            fmt::print("{}: target {}, host {}, {} ranks, mapping {}, generation {}, {} requests, {} B, {}\n",
                       core::printable(facts.name()), core::printable(facts.target), core::printable(facts.host),
                       facts.ranks, name_of(facts.mapping), facts.generation, facts.entries, facts.bytes, facts.state);
        told["requests"] = Json::array();
        if (facts.here) try {
                tapioca::StageReader reader(facts.sought.place.meta());
                auto const show = [&](tapioca::StagedRequest const& request) {
                    if (json)
                        told["requests"].push_back(to_json(request, reader.pieces(request)));
                    else
                        fmt::print("  {}\n", to_text(request));
                };
                status = std::max(status, each(reader, "dump", show));
            } catch (tapioca::Error const& error) {
                status = fail_log("dump", text_of(error), 1);
            }
        document.push_back(std::move(told));
    }
    if (json) fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
    return status;
}

}  // namespace tools
