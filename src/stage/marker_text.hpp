// The text of a marker. The first line says what it is. Two lines that follow take turns in telling how far the log was
// flushed and what the file was then, so that one of them is whole at any time; a third tells of programs that were let
// past the marker; then comes JSON. Specified in docs/formats/log.md; change both together.
#pragma once

#include <string>

#include "stage/marker.hpp"

namespace tapioca::stage {

inline constexpr std::string_view marker_first_line = "tapioca stage 2\n";
inline constexpr std::size_t marker_slot_bytes = 145;
inline constexpr std::size_t marker_slots = 3;
/// No marker of any version is shorter.
inline constexpr std::size_t least_marker_bytes = marker_first_line.size() + 2 * 38;

/// One of the lines that are written anew again and again.
std::string slot_of(Noted const& noted);

/// All of it. Fails where a host's name or a path is no UTF-8, which JSON cannot hold. The target's path is there for
/// people only.
core::Result<std::string> text_of(Marker const& marker);

/// What such a text says, without the target's path, which may be another one on this host.
core::Result<Marker> marker_in(std::string const& text);

}  // namespace tapioca::stage
