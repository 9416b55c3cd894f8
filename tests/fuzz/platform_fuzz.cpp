// Platform files: any text gets an answer, a refusal is one line that names the place, and a machine written as text is
// read back as the same machine.
#include "fuzz/fuzz.hpp"
#include "machine/machine.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using machine::Machine;

bool same(machine::Level const& a, machine::Level const& b)
{
    return a.name == b.name && a.latency_s == b.latency_s && a.bandwidth == b.bandwidth;
}

bool same(machine::TierTraits const& a, machine::TierTraits const& b)
{
    return a.name == b.name && a.kind == b.kind && a.place == b.place && a.latency_s.value == b.latency_s.value &&
           a.write_bandwidth.value == b.write_bandwidth.value && a.read_bandwidth.value == b.read_bandwidth.value &&
           a.capacity_bytes.value == b.capacity_bytes.value && a.persistency == b.persistency;
}

bool same(machine::Storage const& a, machine::Storage const& b)
{
    return a.name == b.name && a.block_bytes == b.block_bytes && a.write_streams == b.write_streams &&
           a.read_streams == b.read_streams && a.write_bw == b.write_bw && a.parallel_write_bw == b.parallel_write_bw &&
           a.contended_write_bw == b.contended_write_bw && a.read_bw == b.read_bw && a.stripe_bytes == b.stripe_bytes &&
           a.stripe_count == b.stripe_count && a.remote == b.remote;
}

void claim_same(machine::Topology const& a, machine::Topology const& b, std::string const& text)
{
    claim(a.kind() == b.kind() && a.nodes() == b.nodes() && a.dimensions() == b.dimensions(), "the topology is kept",
          text);
    claim(std::equal(a.levels().begin(), a.levels().end(), b.levels().begin(), b.levels().end(),
                     [](auto const& x, auto const& y) { return same(x, y); }),
          "levels are kept", text);
    for (int from = 0; from < a.nodes(); ++from)
        for (int to = 0; to < a.nodes(); ++to)
            claim(a.distance(from, to) == b.distance(from, to), "distances are kept", text);
}

void claim_same(Machine const& a, Machine const& b, std::string const& text)
{
    claim(a.name == b.name && a.hosts == b.hosts && a.cores == b.cores && a.settings == b.settings,
          "name, hosts, cores and settings are kept", text);
    claim_same(*a.topology, *b.topology, text);
    claim(a.gateways.nodes == b.gateways.nodes && a.gateways.block == b.gateways.block &&
              a.gateways.hops == b.gateways.hops && a.gateways.servers == b.gateways.servers &&
              a.gateways.through == b.gateways.through && a.gateways.block_bandwidth == b.gateways.block_bandwidth &&
              same(a.gateways.link, b.gateways.link),
          "gateways are kept", text);
    claim(std::equal(a.tiers.begin(), a.tiers.end(), b.tiers.begin(), b.tiers.end(),
                     [](auto const& x, auto const& y) { return same(x, y); }),
          "tiers are kept", text);
    claim(a.storage.has_value() == b.storage.has_value() && (!a.storage || same(*a.storage, *b.storage)),
          "the storage is kept", text);
}

/// What every topology promises, on machines small enough to look at all pairs.
void claim_sound(machine::Topology const& topology)
{
    for (int from = 0; from < topology.nodes(); ++from)
        for (int to = 0; to < topology.nodes(); ++to) {
            auto const distance = topology.distance(from, to);
            int sum = 0;
            for (int const hops : topology.hops(from, to)) sum += hops;
            claim((distance == 0) == (from == to) && distance >= 0, "only a node itself is at distance 0");
            claim(distance == topology.distance(to, from), "distances are symmetric");
            claim(distance == sum, "hops add up to the distance");
        }
    claim(topology.coordinates(0).size() == topology.dimensions().size(), "a coordinate for each dimension");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const machine = machine::parse_platform(text, "f.toml");
    if (!machine) {
        fuzz::claim_one_line(machine.error());
        auto const& line = machine.error().text;
        unsigned row = 0, column = 0;
        int used = 0;
        claim(std::sscanf(line.c_str(), "f.toml:%u:%u: %n", &row, &column, &used) == 2 && used > 0 && row > 0,
              "a refusal names file, line and column", line);
        claim(line.size() > static_cast<std::size_t>(used), "and says why", line);
        return 0;
    }
    claim(machine->topology != nullptr, "a machine has a topology");
    if (machine->topology->nodes() > 64) return 0;
    claim_sound(*machine->topology);
    auto const written = machine::to_toml(*machine);
    auto const again = machine::parse_platform(written, "f.toml");
    claim(again.has_value(), "a machine's text is a platform file", again ? "" : again.error().text + '\n' + written);
    claim_same(*machine, *again, written);
    claim(machine::to_toml(*again) == written, "and gives the same text again", written);
    return 0;
}
