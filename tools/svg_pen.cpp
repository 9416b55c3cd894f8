#include "svg_pen.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace tools {

std::string Colour::text() const
{
    return fmt::format("#{:02x}{:02x}{:02x}", r, g, b);
}

Colour Colour::mixed(Colour with, double part) const
{
    auto const mix = [&](int a, int c) { return static_cast<int>(std::lround(a + (c - a) * part)); };
    return {mix(r, with.r), mix(g, with.g), mix(b, with.b)};
}

char const* Colour::ink() const
{
    return 0.3 * r + 0.59 * g + 0.11 * b > 112 ? "#111" : "#fff";
}

Colour colour_of(std::size_t partition)
{
    static constexpr std::array<Colour, 12> hues{{{0x88, 0xcc, 0xee},
                                                  {0xcc, 0x66, 0x77},
                                                  {0xdd, 0xcc, 0x77},
                                                  {0x11, 0x77, 0x33},
                                                  {0xaa, 0x44, 0x99},
                                                  {0xe6, 0x9f, 0x00},
                                                  {0x4a, 0x3f, 0xa8},
                                                  {0x44, 0xaa, 0x99},
                                                  {0xd5, 0x5e, 0x00},
                                                  {0x00, 0x72, 0xb2},
                                                  {0x99, 0x99, 0x33},
                                                  {0x88, 0x22, 0x55}}};
    auto const hue = hues[partition % hues.size()];
    switch (partition / hues.size() % 3) {
    case 1: return hue.mixed({255, 255, 255}, 0.4);
    case 2: return hue.mixed({0, 0, 0}, 0.25);
    default: return hue;
    }
}

std::string escape(std::string const& text)
{
    std::string result;
    for (char const c : text) {
        switch (c) {
        case '&': result += "&amp;"; break;
        case '<': result += "&lt;"; break;
        case '>': result += "&gt;"; break;
        case '"': result += "&quot;"; break;
        default:
            if (static_cast<unsigned char>(c) >= ' ') result += c;  // XML does not allow control characters
        }
    }
    return result;
}

std::string thousands(std::size_t number)
{
    auto text = std::to_string(number);
    for (auto at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
    return text;
}

void Pen::text(double x, double y, double size, std::string const& what, std::string const& more)
{
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" {}>{}</text>\n", x, y, size, more,
                        escape(what));
}

void Pen::outline(double x, double y, double size)
{
    auto const width = std::clamp(size * 0.09, 1.4, 3.2);
    body += fmt::format(
        "<rect x=\"{0:.2f}\" y=\"{1:.2f}\" width=\"{2:.2f}\" height=\"{2:.2f}\" rx=\"{3:.1f}\" fill=\"none\" "
        "stroke=\"#fff\" stroke-width=\"{4:.1f}\"/>\n",
        x + 0.7 * width, y + 0.7 * width, size - 1.4 * width, size * 0.1, 0.5 * width);
    body += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{}\" height=\"{}\" rx=\"{:.1f}\" fill=\"none\" stroke=\"#111\" "
        "stroke-width=\"{:.1f}\"/>\n",
        x, y, size, size, size * 0.12, width);
}

void Pen::badge(double x, double y, double size, Colour colour, std::size_t shape, std::string const& number_of)
{
    auto const r = size / 2;
    auto const line = std::clamp(size * 0.07, 0.7, 1.6);
    auto const draw_shape = [&](std::string const& style) {
        if (shape % 3 == 0)
            body += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" {}/>\n", x, y, r, style);
        else if (shape % 3 == 1)
            body += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>\n",
                                x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, style);
        else
            body +=
                fmt::format("<path d=\"M{0:.2f} {1:.2f}l{2:.2f} {2:.2f}l-{2:.2f} {2:.2f}l-{2:.2f} -{2:.2f}z\" {3}/>\n",
                            x, y - 1.1 * r, 1.1 * r, style);
    };
    draw_shape(fmt::format("fill=\"none\" stroke=\"#fff\" stroke-width=\"{:.1f}\"", 3 * line));
    draw_shape(fmt::format("fill=\"{}\" stroke=\"#111\" stroke-width=\"{:.1f}\"", colour.text(), line));
    number(x, y, size, colour, number_of);
}

void Pen::number(double x, double y, double size, Colour on, std::string const& number_of)
{
    auto const font = std::min(13.0, size * (number_of.size() < 3 ? 0.58 : 0.44));
    if (font >= 5.5)
        text(x, y + font * 0.36, font, number_of,
             fmt::format("fill=\"{}\" text-anchor=\"middle\" font-weight=\"600\"", on.ink()));
}

void Pen::gateway(double x, double y, double size)
{
    body += fmt::format(
        "<path class=\"gateway\" d=\"M{:.2f} {:.2f}h{:.2f}l-{:.2f} {:.2f}z\" fill=\"#c2003d\" stroke=\"#fff\" "
        "stroke-width=\"0.8\"/>\n",
        x - size * 0.8, y - size * 0.2, size, size / 2, size * 0.87);
}

}  // namespace tools
