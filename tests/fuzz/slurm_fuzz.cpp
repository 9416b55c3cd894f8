// Slurm's host lists, topology addresses and topology.conf: read or refused, and what was read is a machine.
//
// The input: a host list, a line of addresses with blanks between them, then a topology.conf.
#include <set>

#include "fuzz/fuzz.hpp"
#include "machine/machine.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using Names = std::vector<std::string>;

void claim_sound(Names const& names)
{
    claim(!names.empty() && names.size() <= 1'000'000, "a list has names, a million at most");
    for (auto const& name : names) {
        claim(!name.empty(), "no name is empty");
        claim(name.find_first_of(" ,[]\n") == Names::value_type::npos, "a name is one word", name);
    }
    if (names.size() > 100) return;
    std::string list;
    for (auto const& name : names) list += (list.empty() ? "" : ",") + name;
    auto const again = machine::expand_hosts(list);
    claim(again && *again == names, "names as a list are the same names", list);
}

Names words(std::string_view line)
{
    Names result;
    fuzz::Input input(reinterpret_cast<std::uint8_t const*>(line.data()), line.size());
    while (!input.empty()) result.emplace_back(input.until(' '));
    return result;
}

void claim_sound(machine::Machine const& machine, Names const& hosts)
{
    claim(machine.topology && machine.topology->nodes() == static_cast<int>(hosts.size()), "a node for each host");
    fuzz::claim_one_line(machine.origin);
    auto const& topology = *machine.topology;
    for (int from = 0; from < topology.nodes(); ++from)
        for (int to = 0; to < topology.nodes(); ++to)
            claim((topology.distance(from, to) == 0) == (from == to) &&
                      topology.distance(from, to) == topology.distance(to, from),
                  "distances are distances");
    auto const again = machine::parse_platform(machine::to_toml(machine), "f.toml");
    claim(again.has_value(), "the machine's text is a platform file", again ? "" : again.error().text);
    for (int to = 0; to < topology.nodes(); ++to)
        claim(again->topology->distance(0, to) == topology.distance(0, to), "and the same machine");
    auto const nodes = machine::find_hosts(machine, hosts);
    claim(nodes && nodes->size() == hosts.size(), "the machine knows its hosts");
    for (std::size_t i = 0; i < hosts.size(); ++i)
        claim((*nodes)[i] == static_cast<int>(i), "each at its place", hosts[i]);
}

/// Lists of many thousand names take long, and show nothing new.
bool is_long(std::string_view text)
{
    std::size_t digits = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && text[i] >= '0' && text[i] <= '9') {
            ++digits;
            continue;
        }
        if (digits > 3 && digits < 19) return true;
        digits = 0;
    }
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    if (is_long({reinterpret_cast<char const*>(data), size})) return 0;
    fuzz::Input input(data, size);
    auto const list = machine::expand_hosts(input.until('\n'));
    if (!list) fuzz::claim_one_line(list.error());
    auto hosts = list ? *list : Names{"n0", "n1", "n2.site", "n3"};
    claim_sound(hosts);
    if (hosts.size() > 24) hosts.resize(24);
    auto addresses = words(input.until('\n'));
    if (!addresses.empty()) addresses.resize(hosts.size(), "root.s1.x");
    auto const machine = machine::describe_hosts(hosts, addresses, std::string(input.all()));
    claim(machine.has_value(), "whatever Slurm says, there is a machine");
    if (std::set<std::string>(hosts.begin(), hosts.end()).size() == hosts.size()) claim_sound(*machine, hosts);
    return 0;
}
