// Host names: lists as Slurm writes them, and where a job's hosts are in a machine.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/machine.hpp"

namespace tapioca::machine {

namespace {

constexpr std::size_t most_hosts = 1'000'000;
constexpr std::size_t most_letters = 255;  // of a name, as in DNS

std::string_view without_domain(std::string_view host)
{
    return host.substr(0, host.find('.'));
}

/// Whether the character may be part of a name.
bool is_letter(char c)
{
    return c > ' ' && c < 0x7F;
}

/// Appends the numbers of "0-3,7" to each of `names`. Returns false if it is not such a list or if the result gets too
/// long.
bool append_numbers(std::vector<std::string>& names, std::string_view list)
{
    std::vector<std::string> result;
    for (auto const& name : names) {
        auto left = list;
        for (bool more = true; more;) {
            auto const comma = left.find(',');
            auto const range = left.substr(0, comma);
            more = comma != std::string_view::npos;
            if (more) left.remove_prefix(comma + 1);

            auto const dash = range.find('-');
            auto const from = range.substr(0, dash),
                       to = dash == std::string_view::npos ? from : range.substr(dash + 1);
            std::uint64_t first = 0, last = 0;
            auto const number = [](std::string_view text, std::uint64_t& value) {
                auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                return error == std::errc{} && rest == text.data() + text.size();
            };
            if (!number(from, first) || !number(to, last) || last < first) return false;
            if (last - first >= most_hosts || result.size() + (last - first) >= most_hosts) return false;
            if (name.size() + std::max(from.size(), to.size()) > most_letters) return false;
            for (std::uint64_t i = 0; i <= last - first; ++i)
                result.push_back(fmt::format("{}{:0{}}", name, first + i, from.size()));
        }
    }
    names = std::move(result);
    return true;
}

}  // namespace

core::Result<std::vector<std::string>> expand_hosts(std::string_view list)
{
    auto const bad = [&](char const* why) {
        std::string shown(list.substr(0, 200));
        std::replace_if(
            shown.begin(), shown.end(), [](char c) { return !is_letter(c); }, '?');
        return core::fail(Errc::invalid_argument, fmt::format("host list '{}': {}", shown, why));
    };
    std::vector<std::string> hosts;
    std::size_t at = 0;
    while (true) {
        std::vector<std::string> names{""};
        for (; at < list.size() && list[at] != ','; ++at) {
            if (list[at] == '[') {
                auto const end = list.find(']', at);
                if (end == std::string_view::npos) return bad("a '[' without its ']'");
                if (!append_numbers(names, list.substr(at + 1, end - at - 1)))
                    return bad(
                        "brackets must contain ranges such as [0-3,7], for at most a million names of 255 letters");
                at = end;
            } else if (list[at] == ']') {
                return bad("a ']' without its '['");
            } else if (!is_letter(list[at])) {
                return bad("a name must not contain blanks or characters other than ASCII");
            } else if (names.front().size() >= most_letters) {
                return bad("a name has more than 255 letters");
            } else {
                for (auto& name : names) name += list[at];
            }
        }
        if (names.front().empty()) return bad("an empty name");
        if (hosts.size() + names.size() > most_hosts) return bad("more than a million names");
        std::move(names.begin(), names.end(), std::back_inserter(hosts));
        if (at == list.size()) return hosts;
        ++at;
    }
}

core::Result<std::vector<int>> find_hosts(Machine const& machine, std::vector<std::string> const& hosts)
{
    auto const nodes = static_cast<std::size_t>(machine.topology->nodes());
    if (hosts.size() > nodes)
        return core::fail(Errc::setting,
                          fmt::format("the job has {} nodes, {} has {}", hosts.size(), machine.name, nodes));
    std::map<std::string_view, int> numbers;
    std::set<std::string_view> ambiguous;
    for (std::size_t node = 0; node < machine.hosts.size(); ++node)
        if (!numbers.emplace(without_domain(machine.hosts[node]), static_cast<int>(node)).second)
            ambiguous.insert(without_domain(machine.hosts[node]));
    for (auto const name : ambiguous) numbers.erase(name);
    for (std::size_t node = 0; node < machine.hosts.size(); ++node)
        numbers[machine.hosts[node]] = static_cast<int>(node);  // a complete name takes precedence

    std::vector<int> result;
    for (auto const& host : hosts) {
        if (machine.hosts.empty()) {
            result.push_back(static_cast<int>(result.size()));
            continue;
        }
        auto found = numbers.find(host);
        if (found == numbers.end()) found = numbers.find(without_domain(host));
        if (found == numbers.end()) {
            std::vector<std::string> const first(
                machine.hosts.begin(), machine.hosts.begin() + static_cast<long>(std::min<std::size_t>(nodes, 4)));
            return core::fail(Errc::setting, fmt::format("host {} of the job is not in {} ({}{})", host, machine.name,
                                                         fmt::join(first, ", "), nodes > first.size() ? ", ..." : ""));
        }
        result.push_back(found->second);
    }
    return result;
}

}  // namespace tapioca::machine
