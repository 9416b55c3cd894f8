#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "core/units.hpp"
#include "machine/topology/drawing.hpp"
#include "svg_pen.hpp"

namespace tools {

namespace {

using tapioca::machine::TopologyDrawing;

std::string bytes(double count)
{
    return tapioca::core::format_bytes(static_cast<std::uint64_t>(count));
}

class Drawing {
public:
    explicit Drawing(Picture const& picture)
        : picture_(picture),
          machine_(*picture.machine),
          layout_(tapioca::machine::arrange(*machine_.topology, picture.nodes))
    {
        for (std::size_t i = 0; i < picture.nodes.size(); ++i) job_node_[picture.nodes[i]] = static_cast<int>(i);
        sent_.resize(picture.nodes.size());
        for (std::size_t p = 0; p < picture.fed.size(); ++p)
            for (auto const& [node, amount] : picture.fed[p])
                if (amount > 0) sent_[static_cast<std::size_t>(node)].push_back({p, amount});
        for (auto const& aggregator : picture.aggregators)
            if (std::find(tiers_.begin(), tiers_.end(), aggregator.tier) == tiers_.end())
                tiers_.push_back(aggregator.tier);
    }

    std::string document()
    {
        auto const top = 62 + 17 * static_cast<double>(picture_.facts.size());
        pen_.text(margin, 40, 21, picture_.title, "font-weight=\"600\"");
        for (std::size_t i = 0; i < picture_.facts.size(); ++i)
            pen_.text(margin, 62 + 17 * static_cast<double>(i), 13, picture_.facts[i], "fill=\"#444\"");
        pen_.body += fmt::format("<g transform=\"translate({},{})\">\n", margin, top);
        nodes();
        pen_.body += "</g>\n";
        auto const legend_left = margin + std::max(layout_.width, 240.0) + 34;
        auto const bottom = std::max(top + layout_.height, legend(legend_left, top)) + margin;
        auto const width = std::max(legend_left + 292, margin * 2 + 9.6 * static_cast<double>(widest_line()));
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
            "font-family=\"'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif\" fill=\"#1a1a1a\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
            width, bottom, pen_.body);
    }

private:
    static constexpr double margin = 28;

    [[nodiscard]] std::size_t widest_line() const
    {
        auto widest = picture_.title.size() * 11 / 10;
        for (auto const& fact : picture_.facts) widest = std::max(widest, fact.size() * 65 / 100);
        return widest;
    }

    [[nodiscard]] std::string name_of(int node) const
    {
        auto const at = static_cast<std::size_t>(node);
        return at < machine_.hosts.size() ? machine_.hosts[at] : std::to_string(node);
    }
    /// A node's description in a sentence.
    [[nodiscard]] std::string title_of(int node) const
    {
        return (machine_.hosts.empty() ? "node " : "") + name_of(node);
    }

    /// Each tier's aggregators have their own shape.
    [[nodiscard]] std::size_t shape_of(std::string const& tier) const
    {
        return static_cast<std::size_t>(std::find(tiers_.begin(), tiers_.end(), tier) - tiers_.begin());
    }

    /// The partition to which a node of the job sends the most; -1: it has no data.
    [[nodiscard]] int main_partition(int job_node) const
    {
        auto const& sent = sent_[static_cast<std::size_t>(job_node)];
        auto const most =
            std::max_element(sent.begin(), sent.end(), [](auto& a, auto& b) { return a.second < b.second; });
        return most == sent.end() ? -1 : static_cast<int>(most->first);
    }

    /// Frames leave no room for the tint of blocks.
    [[nodiscard]] bool tinted() const { return machine_.gateways.block > 0 && layout_.frames.empty(); }

    void nodes()
    {
        if (tinted())
            for (auto const& [node, x, y] : layout_.spots) {
                auto const pad = tapioca::machine::layout_gap(layout_.cell) / 2 +
                                 0.26 * layout_.cell;  // up to the middle between neighbours
                auto const side = layout_.cell + 2 * pad;
                pen_.body +=
                    fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
                                x - pad, y - pad, side, side,
                                tints[static_cast<std::size_t>(node / machine_.gateways.block) % tints.size()]);
            }
        for (auto const& frame : layout_.frames) {
            pen_.body += fmt::format(
                "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" rx=\"{}\" fill=\"{}\" "
                "stroke=\"{}\"/>\n",
                frame.x, frame.y, frame.width, frame.height, frame.light ? 2 : 7, frame.light ? "#eceff3" : "#f7f8fa",
                frame.light ? "none" : "#aab2bd");
            if (!frame.label.empty()) pen_.text(frame.x + 8, frame.y + 14.5, 11, frame.label, "fill=\"#555\"");
        }
        for (auto const& edge : layout_.edges) this->edge(edge);
        for (auto const& label : layout_.texts)
            pen_.text(label.x, label.y, 10, label.text, "fill=\"#666\" text-anchor=\"middle\"");
        for (auto const& spot : layout_.spots) cell(spot);
        for (auto const& spot : layout_.spots) marks(spot);
    }

    void edge(TopologyDrawing::Edge const& edge)
    {
        pen_.body += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#8a93a0\" stroke-width=\"2\"/>\n",
            edge.x1, edge.y1, edge.x2, edge.y2);
        auto const x = std::lerp(edge.x1, edge.x2, edge.label_at), y = std::lerp(edge.y1, edge.y2, edge.label_at);
        pen_.body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"10\" fill=\"#fff\"/>\n", x, y);
        pen_.text(x, y + 4.5, 13, edge.label, "text-anchor=\"middle\"");
    }

    void cell(TopologyDrawing::Point const& spot)
    {
        auto const job = job_node_.find(spot.node);
        auto const size = layout_.cell;
        std::string fill = "#e4e6e9", line = "#d3d6da", ink = "#8a8f96", about = title_of(spot.node);
        if (job == job_node_.end()) {
            about += ": not used";
        } else if (auto const main = main_partition(job->second); main < 0) {
            fill = "#fff", line = "#777", ink = "#333";
            about += ": no data";
        } else {
            auto const colour = colour_of(static_cast<std::size_t>(main));
            fill = colour.text(), ink = colour.ink();
            line = colour.mixed({0, 0, 0}, 0.3).text();
            double all = 0;
            for (auto const& [p, amount] : sent_[static_cast<std::size_t>(job->second)]) all += amount;
            about += fmt::format(": {}, most of it to partition {}", bytes(all), main);
        }
        pen_.body += fmt::format(
            "<rect class=\"node\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{}\" height=\"{}\" rx=\"{:.1f}\" fill=\"{}\" "
            "stroke=\"{}\" "
            "stroke-width=\"{}\"><title>{}</title></rect>\n",
            spot.x, spot.y, size, size, size * 0.12, fill, line, size < 14 ? 0.4 : 0.8, escape(about));
        if (auto const& hops = machine_.gateways.hops; !layout_.edges.empty() && !hops.empty())
            pen_.text(spot.x + size / 2, spot.y < layout_.height / 3 ? spot.y - 6 : spot.y + size + 14, 11,
                      fmt::format("{} to storage", hops[static_cast<std::size_t>(spot.node)]),
                      "fill=\"#666\" text-anchor=\"middle\"");
        auto const name = name_of(spot.node);
        auto const fits = std::min(11.0, size * 1.5 / static_cast<double>(name.size()));
        if (size >= 34 && fits >= 6.5)
            pen_.text(spot.x + size / 2, spot.y + size - 5, fits, name,
                      fmt::format("fill=\"{}\" text-anchor=\"middle\"", ink));
    }

    /// Aggregators and gateways, over all cells.
    void marks(TopologyDrawing::Point const& spot)
    {
        std::vector<std::size_t> here;
        auto const job = job_node_.find(spot.node);
        if (job != job_node_.end())
            for (std::size_t p = 0; p < picture_.aggregators.size(); ++p)
                if (picture_.aggregators[p].node == job->second) here.push_back(p);
        auto const size = layout_.cell;
        if (!here.empty()) pen_.outline(spot.x, spot.y, size);
        auto const columns = std::ceil(std::sqrt(static_cast<double>(here.size())));
        auto const room = size >= 34 ? size - 19 : size * 0.74;  // leaves room for the name below
        for (std::size_t i = 0; i < here.size(); ++i) {
            auto const rows = std::ceil(static_cast<double>(here.size()) / columns);
            auto const side = room / columns;
            auto const column = static_cast<double>(i % static_cast<std::size_t>(columns));
            auto const row = static_cast<double>(i / static_cast<std::size_t>(columns));
            auto const x = spot.x + (size - room) / 2 + (column + 0.5) * side;
            auto const y =
                spot.y + (size >= 34 ? 4 + (room - rows * side) / 2 : (size - rows * side) / 2) + (row + 0.5) * side;
            pen_.body += fmt::format("<g class=\"aggregator\"><title>partition {}: {}, buffers in {}</title>\n",
                                     here[i], escape(title_of(spot.node)), escape(picture_.aggregators[here[i]].tier));
            auto const& tier = picture_.aggregators[here[i]].tier;
            if (here.size() == 1 && tiers_.size() == 1 && main_partition(job->second) == static_cast<int>(here[i]))
                pen_.number(x, y, side * 1.1, colour_of(here[i]), std::to_string(here[i]));  // the cell shows the rest
            else
                pen_.badge(x, y, side * 0.85, colour_of(here[i]), shape_of(tier), std::to_string(here[i]));
            pen_.body += "</g>\n";
        }
        auto const& gateways = machine_.gateways.nodes;
        if (std::find(gateways.begin(), gateways.end(), spot.node) != gateways.end())
            pen_.gateway(spot.x + size * 0.62, spot.y + size * 0.1, std::clamp(size * 0.36, 4.0, 12.0));
    }

    /// Draws the marks, the links and the partitions; returns where it ends.
    double legend(double x, double y)
    {
        auto const bottom = y + layout_.height;
        auto const line = [&](std::string const& what) {
            pen_.text(x + 28, y + 12, 12, what);
            y += 21;
        };
        auto const heading = [&](std::string const& what) {
            pen_.text(x, y + 14, 12, what, "font-weight=\"600\"");
            y += 24;
        };
        auto const square = [&](char const* fill, char const* stroke) {
            pen_.body +=
                fmt::format("<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"16\" rx=\"2\" fill=\"{}\" stroke=\"{}\"/>\n",
                            x, y, fill, stroke);
        };
        auto const used = picture_.nodes.size();
        auto const hidden = machine_.topology->nodes() - static_cast<int>(layout_.spots.size());
        std::string kind(machine_.topology->kind());
        std::replace(kind.begin(), kind.end(), '_', ' ');
        heading(fmt::format("{}: {} of {} nodes used", kind, thousands(used),
                            thousands(static_cast<std::size_t>(machine_.topology->nodes()))));
        for (std::size_t i = 0; i < 3; ++i)
            pen_.body += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"5.4\" height=\"16\" fill=\"{}\"/>\n",
                                     x + 5.3 * static_cast<double>(i), y, colour_of(i).text());
        line("node, in the colour of its main partition");
        for (auto const& tier : tiers_) {
            pen_.outline(x, y, 16);
            if (tiers_.size() > 1) pen_.badge(x + 8, y + 8, 10, {255, 255, 255}, shape_of(tier), "");
            line("aggregator, buffers in " + tier);
        }
        if (!machine_.gateways.nodes.empty()) {
            pen_.gateway(x + 9, y + 4, 13);
            line("gateway to the file system");
        }
        if (tinted()) {
            for (std::size_t i = 0; i < 2; ++i)
                pen_.body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"8\" height=\"16\" fill=\"{}\"/>\n",
                                         x + 8 * static_cast<double>(i), y, tints[i]);
            line(fmt::format("blocks of {} nodes with gateways", machine_.gateways.block));
        }
        if (std::any_of(sent_.begin(), sent_.end(), [](auto const& sent) { return sent.empty(); })) {
            square("#fff", "#777");
            line("node without data");
        }
        if (layout_.spots.size() > used) {
            square("#e4e6e9", "#d3d6da");
            line("not used by the job");
        }
        if (!layout_.edges.empty()) {
            pen_.text(x + 8, y + 12, 12, "3", "text-anchor=\"middle\"");
            line("hops between two nodes");
        }
        if (hidden > 0) line(thousands(static_cast<std::size_t>(hidden)) + " more nodes are not shown");
        y += 8;
        links(x, y);
        partitions(x, y, bottom);
        return y;
    }

    void links(double x, double& y)
    {
        for (auto const& level : machine_.topology->levels()) {
            if (level.bandwidth <= 0) continue;
            auto const giga = level.bandwidth >= 1e9, milli = level.latency_s >= 1e-3;
            pen_.text(x, y + 12, 12,
                      fmt::format("{}: {:.4g} {}/s, {:.3g} {} a hop", level.name.empty() ? "links" : level.name,
                                  level.bandwidth / (giga ? 1e9 : 1e6), giga ? "GB" : "MB",
                                  level.latency_s * (milli ? 1e3 : 1e6), milli ? "ms" : "µs"),
                      "fill=\"#444\"");
            y += 19;
        }
        y += 8;
    }

    /// Draws as many as fit beside the nodes.
    void partitions(double x, double& y, double bottom)
    {
        auto const count = picture_.aggregators.size();
        if (count == 0) return;
        pen_.text(x, y + 14, 12, fmt::format("{} partition{}", thousands(count), count == 1 ? "" : "s"),
                  "font-weight=\"600\"");
        y += 24;
        auto const rows = std::max<std::size_t>(12, static_cast<std::size_t>(std::max(0.0, bottom - y - 19) / 19));
        for (std::size_t p = 0; p < count && p < rows; ++p) {
            pen_.badge(x + 8, y + 8, 15, colour_of(p), shape_of(picture_.aggregators[p].tier), std::to_string(p));
            double all = 0;
            std::size_t feeders = 0;
            if (p < picture_.fed.size())
                for (auto const& [node, amount] : picture_.fed[p]) {
                    all += amount;
                    feeders += amount > 0 ? 1 : 0;
                }
            auto const& home = picture_.nodes[static_cast<std::size_t>(picture_.aggregators[p].node)];
            pen_.text(
                x + 28, y + 12, 12,
                fmt::format("{}: {} from {} node{}", title_of(home), bytes(all), feeders, feeders == 1 ? "" : "s"));
            y += 19;
        }
        if (count > rows) {
            pen_.text(x + 28, y + 12, 12,
                      fmt::format("and {} more{}", thousands(count - rows), count > colours ? "; colours repeat" : ""));
            y += 19;
        }
    }

    Picture const& picture_;
    tapioca::machine::Machine const& machine_;
    TopologyDrawing layout_;
    std::map<int, int> job_node_;
    std::vector<std::vector<std::pair<std::size_t, double>>> sent_;  // per node of the job: partition, bytes
    std::vector<std::string> tiers_;
    Pen pen_;
};

}  // namespace

std::string draw(Picture const& picture)
{
    return Drawing(picture).document();
}

}  // namespace tools
