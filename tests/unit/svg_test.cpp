// The picture of a plan: well-formed, complete, and of the nodes that matter.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "svg.hpp"

namespace tools {
namespace {

using namespace tapioca::machine;

Level const link{"link", 1e-6, 1e9};

std::vector<int> from(int first, int count)
{
    std::vector<int> nodes(static_cast<std::size_t>(count));
    std::iota(nodes.begin(), nodes.end(), first);
    return nodes;
}

/// `partitions` of equal parts of the nodes, each with its first as aggregator.
Picture picture_of(Machine const& machine, std::vector<int> nodes, int partitions)
{
    Picture picture;
    picture.machine = &machine;
    picture.nodes = std::move(nodes);
    picture.title = "a plan";
    auto const count = static_cast<int>(picture.nodes.size());
    for (int p = 0; p < partitions; ++p) {
        picture.aggregators.push_back({p * count / partitions, "dram"});
        picture.fed.emplace_back();
        for (int node = p * count / partitions; node < (p + 1) * count / partitions; ++node)
            picture.fed.back().emplace_back(node, 1e6);
    }
    return picture;
}

int count(std::string const& text, std::string const& what)
{
    int result = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++result;
    return result;
}

/// What is wrong with the tags: one that is not closed in turn, text outside, a bare ampersand; nothing if all is well.
std::string fault_in(std::string const& xml)
{
    std::vector<std::string> open;
    for (std::size_t at = 0; at < xml.size();) {
        if (xml[at] == '&' && xml.find(';', at) > at + 6) return "bare & at " + std::to_string(at);
        if (xml[at] == '>') return "bare > at " + std::to_string(at);
        if (xml[at] != '<') {
            if (open.empty() && xml[at] != '\n') return "text outside";
            ++at;
            continue;
        }
        auto const end = xml.find('>', at);
        if (end == std::string::npos) return "a tag that does not end";
        auto const tag = xml.substr(at + 1, end - at - 1);
        if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return "<" + tag + ">";
        if (tag[0] == '/') {
            if (open.empty() || open.back() != tag.substr(1)) return "<" + tag + "> closes another";
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(tag.substr(0, tag.find(' ')));
        }
        at = end + 1;
    }
    return open.empty() ? "" : open.back() + " is not closed";
}

void expect_drawn(Picture const& picture, int cells)
{
    auto const svg = draw(picture);
    EXPECT_EQ(fault_in(svg), "");
    EXPECT_EQ(count(svg, "class=\"node\""), cells);
    EXPECT_EQ(count(svg, "class=\"aggregator\""), static_cast<int>(picture.aggregators.size()));
    EXPECT_EQ(count(svg, "nan"), 0);
    EXPECT_NE(svg.find("viewBox=\"0 0 "), std::string::npos);
}

TEST(Svg, DrawsEveryNodeOfEveryKind)
{
    Machine machine;
    machine.topology = make_flat(16, link);
    expect_drawn(picture_of(machine, from(0, 16), 4), 16);
    machine.topology = make_torus({4, 4, 4, 2}, link);
    expect_drawn(picture_of(machine, from(0, 128), 16), 128);
    machine.topology = make_torus({4}, link);
    expect_drawn(picture_of(machine, from(0, 4), 4), 4);
    machine.topology = make_dragonfly({2, 3, 4, 4}, link, link, link);
    expect_drawn(picture_of(machine, from(0, 96), 7), 96);
    machine.topology = make_fat_tree({{0, 0, 1, 1, 2}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 0}}, {link, link, link});
    expect_drawn(picture_of(machine, from(0, 5), 5), 5);
    machine.topology = make_matrix({{0, 5, 7}, {5, 0, 5}, {7, 5, 0}}, link);
    machine.gateways.hops = {3, 2, 5};
    expect_drawn(picture_of(machine, from(0, 3), 2), 3);
    machine.gateways = {};
    machine.topology = make_flat(1, link);
    expect_drawn(picture_of(machine, from(0, 1), 1), 1);
}

TEST(Svg, LeavesOutWhatTheJobDoesNotTouchOfALargeMachine)
{
    Machine machine;
    machine.topology = make_dragonfly({9, 16, 6, 4}, link, link, link);
    expect_drawn(picture_of(machine, from(384, 400), 48), 2 * 384);
    EXPECT_NE(draw(picture_of(machine, from(384, 400), 48)).find("2,688 more nodes are not shown"), std::string::npos);
    machine.topology = make_torus({4, 4, 16, 8, 2}, link);
    expect_drawn(picture_of(machine, from(256, 512), 64), 512);
    machine.topology = make_flat(1000, link);
    expect_drawn(picture_of(machine, from(900, 10), 2), 10);
    std::vector<int> leaves(64);
    for (int node = 0; node < 64; ++node) leaves[static_cast<std::size_t>(node)] = node / 8;
    machine.topology = make_fat_tree({leaves, std::vector<int>(64, 0)}, {link, link});
    expect_drawn(picture_of(machine, from(6, 4), 2), 16);
}

TEST(Svg, ShowsSeveralAggregatorsOfANodeAndTheirTiers)
{
    Machine machine;
    machine.topology = make_flat(4, link);
    auto picture = picture_of(machine, from(0, 4), 8);
    for (std::size_t p = 0; p < 8; ++p) picture.aggregators[p] = {1, p % 2 ? "ssd" : "dram"};
    expect_drawn(picture, 4);
    EXPECT_NE(draw(picture).find("aggregator, buffers in ssd"), std::string::npos);
}

TEST(Svg, MarksGatewaysThatAreShown)
{
    Machine machine;
    machine.topology = make_torus({4, 8}, link);
    machine.gateways.block = 16;
    machine.gateways.nodes = {0, 8, 16, 24};
    auto const marks = [&](int nodes) {
        return count(draw(picture_of(machine, from(0, nodes), 2)), "class=\"gateway\"");
    };
    EXPECT_EQ(marks(32), 4 + 1);  // and one in the legend
    EXPECT_EQ(marks(8), 1 + 1);
}

TEST(Svg, SaysWhoHasNoData)
{
    Machine machine;
    machine.topology = make_flat(4, link);
    auto picture = picture_of(machine, from(0, 4), 1);
    EXPECT_EQ(draw(picture).find("node without data"), std::string::npos);
    picture.fed[0].pop_back();
    EXPECT_NE(draw(picture).find("node without data"), std::string::npos);
}

TEST(Svg, EscapesWhatPeopleWrite)
{
    Machine machine;
    machine.topology = make_flat(2, link);
    machine.hosts = {"a<b", "c&d"};
    auto picture = picture_of(machine, from(0, 2), 1);
    picture.title = "a < b && \"c\" > d\x01";
    picture.facts = {"</svg>"};
    picture.aggregators[0].tier = "<ssd>";
    expect_drawn(picture, 2);
    EXPECT_NE(draw(picture).find("a &lt; b &amp;&amp; &quot;c&quot; &gt; d</text>"), std::string::npos);
}

}  // namespace
}  // namespace tools
