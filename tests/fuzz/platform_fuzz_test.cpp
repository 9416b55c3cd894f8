// Platform files that went wrong: whatever the text, there is an answer, soon, and a refusal is one line.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "machine/machine.hpp"

namespace tapioca::machine {
namespace {

class Mutator {
public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t end) { return random_() % end; }

    std::string_view token()
    {
        static constexpr std::string_view tokens[] = {"0",
                                                      "-1",
                                                      "1",
                                                      "2",
                                                      "7",
                                                      "1000000",
                                                      "1000001",
                                                      "9223372036854775807",
                                                      "1e308",
                                                      "nan",
                                                      "-inf",
                                                      "true",
                                                      "\"\"",
                                                      "\"n[0-7]\"",
                                                      "\"n[0-4999]\"",
                                                      "\"n[[\"",
                                                      "\"16GiB\"",
                                                      "\"1.5us\"",
                                                      "\"12.5GB/s\"",
                                                      "\"-1GB/s\"",
                                                      "[]",
                                                      "[0]",
                                                      "[1, 2]",
                                                      "[[0]]",
                                                      "[[0, 1], [1, 0]]",
                                                      "{}",
                                                      "{ a = 1 }",
                                                      "1979-05-27",
                                                      "\"\\n\\u0007\"",
                                                      "\"torus\"",
                                                      "\"flat\"",
                                                      "\"dragonfly\"",
                                                      "\"fat_tree\"",
                                                      "\"matrix\"",
                                                      "\"ssd\"",
                                                      "\"numa\"",
                                                      "\"gpfs\""};
        return tokens[below(std::size(tokens))];
    }

    std::string_view key()
    {
        static constexpr std::string_view keys[] = {"name",
                                                    "hosts",
                                                    "kind",
                                                    "nodes",
                                                    "dimensions",
                                                    "groups",
                                                    "rows",
                                                    "columns",
                                                    "nodes_per_router",
                                                    "arity",
                                                    "switches",
                                                    "distances",
                                                    "level",
                                                    "latency",
                                                    "bandwidth",
                                                    "block",
                                                    "per_block",
                                                    "hops",
                                                    "place",
                                                    "capacity",
                                                    "persistency",
                                                    "origin",
                                                    "type",
                                                    "stripe",
                                                    "stripe_count",
                                                    "write_streams",
                                                    "remote",
                                                    "cores",
                                                    "x",
                                                    "\"\\n\"",
                                                    "a.b",
                                                    "topology.kind",
                                                    "topology",
                                                    "tier"};
        return keys[below(std::size(keys))];
    }

    std::string_view header()
    {
        static constexpr std::string_view headers[] = {"[topology]",  "[[topology.level]]", "[gateways]", "[[tier]]",
                                                       "[storage]",   "[settings]",         "[node]",     "[x]",
                                                       "[[topology]]"};
        return headers[below(std::size(headers))];
    }

    std::string line()
    {
        return below(5) == 0 ? std::string(header()) : std::string(key()) + " = " + std::string(token());
    }

    /// Mostly right, so that what is behind the first check is reached, too.
    std::string file()
    {
        static std::vector<std::string> const topologies[] = {
            {"kind = \"flat\"", "nodes = 8"},
            {"kind = \"torus\"", "dimensions = [2, 2, 2]", "nodes = 8"},
            {"kind = \"dragonfly\"", "groups = 2", "rows = 2", "columns = 1", "nodes_per_router = 2"},
            {"kind = \"fat_tree\"", "arity = [4, 2]", "nodes = 8"},
            {"kind = \"fat_tree\"", "switches = [[\"n[0-3]\"], [\"n4\", \"n5\"], \"n6\", \"n7\"]"},
            {"kind = \"fat_tree\"", "switches = [[0, 3], [1, [4, 5, 6]], [2], 7]"},
            {"kind = \"matrix\"", "distances = [[0, 2], [2, 0]]"},
        };
        static std::vector<std::string> const sections[] = {
            {"[[topology.level]]", "name = \"wire\"", "latency = \"1us\"", "bandwidth = 1e9"},
            {"[gateways]", "nodes = [0, 1]", "latency = 0", "bandwidth = \"1Gbit/s\""},
            {"[gateways]", "block = 2", "per_block = [1]"},
            {"[gateways]", "hops = [1, 2, 3, 4, 5, 6, 7, 8]"},
            {"[[tier]]", "name = \"hbm\"", "place = \"1\"", "capacity = \"16GiB\"", "origin = \"measured\""},
            {"[[tier]]", "name = \"ssd:/tmp\"", "write_bandwidth = 3", "read_bandwidth = \"1KB/s\"", "latency = 1"},
            {"[storage]", "type = \"gpfs\"", "block = 4096", "write_streams = 3", "stripe = \"1MiB\"", "remote = true"},
            {"[settings]", "buffers = 2", "\"a b\" = \"\\t\"", "c = false"},
            {"[node]", "cores = 4"},
        };
        std::string text = below(3) == 0 ? "hosts = \"n[0-7]\"\n[topology]\n" : "[topology]\n";
        auto const add = [&](std::vector<std::string> const& lines) {
            for (auto const& good : lines) text += (below(30) == 0 ? line() : good) + '\n';
        };
        add(topologies[below(std::size(topologies))]);
        for (auto left = below(5); left > 0; --left) add(sections[below(std::size(sections))]);
        return text;
    }

    void mutate(std::string& text)
    {
        auto const at = below(text.size() + 1);
        auto const length = std::min(below(20), text.size() - at);
        switch (below(7)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, 1, static_cast<char>(below(256))); break;
        case 2: text.insert(at, token()); break;
        case 3: text.insert(at, text.substr(below(text.size() + 1), below(40))); break;
        case 4: replace_value(text, at); break;
        case 5: text.insert(std::min(text.find('\n', at), text.size()), '\n' + line()); break;
        default:
            if (at < text.size()) text[at] = static_cast<char>(below(128));
        }
    }

private:
    /// What stands behind the next '=' on its line.
    void replace_value(std::string& text, std::size_t at)
    {
        auto const equals = text.find('=', at);
        if (equals == std::string::npos) return;
        auto const end = std::min(text.find('\n', equals), text.size());
        text.replace(equals + 1, end - equals - 1, ' ' + std::string(token()));
    }

    std::mt19937 random_;
};

/// True if the text is a platform. Its own text must be one, too.
bool is_answered(std::string const& text)
{
    auto const machine = parse_platform(text, "f.toml");
    if (!machine) {
        auto const& line = machine.error().text;
        EXPECT_TRUE(line.starts_with("f.toml:")) << line;
        EXPECT_GT(line.size(), std::string("f.toml:1:1: ").size());
        EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }))
            << line;
        return false;
    }
    EXPECT_TRUE(machine->topology != nullptr);
    if (machine->topology->nodes() > 64) return true;
    auto const again = parse_platform(to_toml(*machine), "f.toml");
    EXPECT_TRUE(again) << again.error().text << '\n' << text << '\n' << to_toml(*machine);
    return true;
}

TEST(PlatformFuzz, MutatedPlatformsAreReadOrRefused)
{
    std::vector<std::string> originals;
    for (auto const& name : shipped_platforms()) originals.push_back(read_platform(name).value().text);
    ASSERT_FALSE(originals.empty());
    int accepted = 0;
    for (unsigned seed = 0; seed < 10000; ++seed) {
        Mutator mutator(seed);
        auto text = originals[seed % originals.size()];
        for (auto left = 1 + mutator.below(4); left > 0; --left) mutator.mutate(text);
        accepted += is_answered(text) ? 1 : 0;
    }
    EXPECT_GT(accepted, 500);
    EXPECT_LT(accepted, 9500);
}

TEST(PlatformFuzz, RandomFilesAreReadOrRefused)
{
    int accepted = 0;
    for (unsigned seed = 0; seed < 10000; ++seed) {
        Mutator mutator(seed + 1'000'000);
        auto text = mutator.file();
        for (auto left = mutator.below(3); left > 0; --left) mutator.mutate(text);
        accepted += is_answered(text) ? 1 : 0;
    }
    EXPECT_GT(accepted, 500);
    EXPECT_LT(accepted, 9500);
}

TEST(PlatformFuzz, HostListsAndTopologyConfsAreReadOrRefused)
{
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Mutator mutator(seed + 2'000'000);
        std::string list = "n[0-3,7],login", conf = "SwitchName=s0 Nodes=n[0-3]\nSwitchName=t Switches=s[0-1] \\\n#x\n";
        std::string address = "root.s1.n0";
        for (auto left = 1 + mutator.below(4); left > 0; --left) {
            mutator.mutate(list);
            mutator.mutate(conf);
            mutator.mutate(address);
        }
        auto const hosts = expand_hosts(list);
        EXPECT_TRUE(!hosts || !hosts->empty());
        (void)describe_hosts({"n0", "n1", "s0"}, {}, conf);
        EXPECT_TRUE(describe_hosts({"n0", "n1"}, {address, "root.s1.n1"}, ""));
    }
}

TEST(PlatformFuzz, DeepNestingIsRefused)
{
    for (std::string const open : {"[", "{a=", "[["}) {
        std::string text = "[topology]\nkind = \"fat_tree\"\nswitches = ";
        for (int i = 0; i < 100000; ++i) text += open;
        EXPECT_FALSE(is_answered(text));
    }
    for (int const parts : {9'000, 1'000'000}) {
        std::string keys = "a";
        for (int i = 0; i < parts; ++i) keys += ".a";
        EXPECT_FALSE(is_answered(keys + " = 1\n"));
        EXPECT_FALSE(is_answered('[' + keys + "]\n"));
    }
}

}  // namespace
}  // namespace tapioca::machine
