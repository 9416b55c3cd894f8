// Pen: the marks that pictures are made of, as SVG.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace tools {

struct Colour {
    int r, g, b;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Colour mixed(Colour with, double part) const;
    /// What can be read on it.
    [[nodiscard]] char const* ink() const;
};

/// After Paul Tol's and Okabe and Ito's colours, which the colour-blind can tell apart; then the same lighter and
/// darker.
Colour colour_of(std::size_t partition);
inline constexpr std::size_t colours = 36;

/// Of blocks of nodes, in turn.
inline constexpr std::array<char const*, 4> tints{"#d8e4f2", "#f8e9cd", "#d7eddb", "#f0dcec"};

/// Text as XML has it.
std::string escape(std::string const& text);
/// 1024 as "1,024".
std::string thousands(std::size_t number);

/// Adds marks to a drawing, one after the other. Coordinates are in pixels from the top left.
class Pen {
public:
    /// What is drawn so far; anything else may be added.
    std::string body;

    void text(double x, double y, double size, std::string const& what, std::string const& more = "");
    /// Of an aggregator's node: dark, with a light line inside that sets it off from dark colours.
    void outline(double x, double y, double size);
    /// An aggregator: its partition's colour and number, in one of three shapes.
    void badge(double x, double y, double size, Colour colour, std::size_t shape, std::string const& number_of);
    /// In the middle of something of this size and colour, if that is large enough.
    void number(double x, double y, double size, Colour on, std::string const& number_of);
    void gateway(double x, double y, double size);
};

}  // namespace tools
