#include "plan/to_json.hpp"

#include "core/index.hpp"
#include "plan/ways.hpp"

namespace tapioca::plan {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(Job const& job, int node, std::size_t tier, Cost const& cost)
{
    auto const at = core::index(node) < job.where.size() ? job.where[core::index(node)] : node;
    auto const& hosts = job.machine->hosts;
    return {{"node", node},
            {"host", core::index(at) < hosts.size() ? hosts[core::index(at)] : ""},
            {"tier", job.machine->tiers[tier].name},
            {"c1_s", cost.c1_s},
            {"c2_s", cost.c2_s},
            {"cost_s", cost.total_s}};
}

Json to_json(Job const& job, std::vector<AggregatorPlace> const& aggregator_places)
{
    auto list = Json::array();
    for (auto const& aggregator_place : aggregator_places) {
        auto one = to_json(job, aggregator_place.node, aggregator_place.tier, aggregator_place.cost);
        one["rivals"] = Json::array();
        for (auto const& bid : aggregator_place.rivals)
            one["rivals"].push_back(to_json(job, bid.node, static_cast<std::size_t>(bid.tier), bid.cost));
        list.push_back(std::move(one));
    }
    return list;
}

/// The alternatives, as settings that force them.
Json to_json(std::vector<Alternative> const& alternatives)
{
    auto list = Json::array();
    for (auto const& one : alternatives)
        list.push_back({{"way", one.name()},
                        {"aggregators", one.aggregators},
                        {"buffer_bytes", one.buffer_bytes},
                        {"seconds", one.seconds}});
    return list;
}

Json to_json(Job const& job, Route const& route, bool reading)
{
    Json json;
    json["way"] = route.way == Way::direct ? "direct" : "aggregated";
    json["reason"] = route.feasible ? route.why() : "refused";
    if (!route.feasible) json["refused"] = route.feasible.error().text;
    json["aggregators"] = route.ranks;
    json["buffers"] = route.buffers;
    json["buffer_bytes"] = route.round_bytes;
    json["dense"] = route.dense;
    json["partitions"] = Json::array();
    if (route.way == Way::aggregated)
        for (auto const& p : schedule(route, job.storage.block_bytes, 0).partitions)
            json["partitions"].push_back({{"begin", p.begin}, {"end", p.end}, {"rounds", p.rounds}});
    json["predicted"] = Json::array();
    for (auto const& candidate : route.candidates())
        json["predicted"].push_back({{"way", candidate.name}, {"seconds", candidate.seconds}});
    if (!route.parts.empty()) {
        json["made_of"] = Json::object();
        for (auto const& part : route.parts) json["made_of"][part.name] = part.seconds;
    }
    if (route.passage.used > 0)
        json["gateways"] = {{"used", route.passage.used},
                            {"most_bytes", static_cast<std::uint64_t>(route.passage.most_bytes)},
                            {"most_block_bytes", static_cast<std::uint64_t>(route.passage.most_block_bytes)}};
    if (job.nodes == 1) json["alternatives"] = to_json(alternatives(job, route, reading));
    if (route.way == Way::aggregated) json["tiers"] = route.tiers(job);
    if (route.way == Way::aggregated && !route.aggregator_places.empty()) {
        json["strategy"] = name(strategy_of(job));
        json["model"] = name(model_of(job));
        json["places"] = to_json(job, route.aggregator_places);
    }
    if (route.networked())
        json["network"] = {{"nodes", job.nodes},
                           {"transport", route.network.transport == Transport::rma ? "rma" : "p2p"},
                           {"crossing_bytes", route.network.crossing_bytes},
                           {"most_in_bytes", route.network.most_in_bytes},
                           {"most_out_bytes", route.network.most_out_bytes}};
    json["notes"] = route.notes;
    return json;
}

}  // namespace

Json to_json(Plan const& plan)
{
    auto const& job = plan.job;
    Json json;
    json["ranks"] = job.ranks;
    json["nodes"] = job.nodes;
    json["cores"] = job.cores;
    if (job.machine)
        json["machine"] = {{"name", job.machine->name},
                           {"origin", job.machine->origin},
                           {"topology", std::string(job.machine->topology->kind())},
                           {"nodes", job.machine->topology->nodes()}};
    json["file_system"] = job.storage.name;
    json["block_bytes"] = job.storage.block_bytes;
    if (job.storage.stripe_bytes > 0) {
        json["stripe_bytes"] = job.storage.stripe_bytes;
        json["stripe_count"] = job.storage.stripe_count;
    }
    json["bytes"] = job.pattern.bytes;
    json["pieces"] = job.pattern.pieces;
    json["begin"] = job.pattern.begin;
    json["end"] = job.pattern.end;
    if (!job.variables.empty()) json["variables"] = job.variables;
    json["write"] = to_json(job, plan.write, false);
    json["read"] = to_json(job, plan.read, true);
    return json;
}

}  // namespace tapioca::plan
