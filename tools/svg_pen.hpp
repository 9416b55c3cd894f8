// Pen: the marks of which pictures consist, as SVG.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace tools {

struct Colour {
    int r, g, b;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Colour mixed(Colour with, double part) const;
    /// A colour for text on it.
    [[nodiscard]] char const* ink() const;
};

/// Based on the colours of Paul Tol and of Okabe and Ito, which colour-blind people can distinguish; then lighter and
/// darker variants.
Colour colour_of(std::size_t partition);
inline constexpr std::size_t colours = 36;

/// Tints for blocks of nodes, used in turn.
inline constexpr std::array<char const*, 4> tints{"#d8e4f2", "#f8e9cd", "#d7eddb", "#f0dcec"};

/// Escapes text for XML.
std::string escape(std::string const& text);
/// 1024 as "1,024".
std::string thousands(std::size_t number);

/// Adds marks to a drawing, one after the other. Coordinates are in pixels from the top left.
class Pen {
public:
    /// What has been drawn so far; other elements may be appended.
    std::string body;

    void text(double x, double y, double size, std::string const& what, std::string const& more = "");
    /// The outline of an aggregator's node: dark, with a light line inside that separates it from dark colours.
    void outline(double x, double y, double size);
    /// An aggregator: its partition's colour and number, in one of three shapes.
    void badge(double x, double y, double size, Colour colour, std::size_t shape, std::string const& number_of);
    /// A number in the middle of a shape of this size and colour, if it is large enough.
    void number(double x, double y, double size, Colour on, std::string const& number_of);
    void gateway(double x, double y, double size);
};

}  // namespace tools
