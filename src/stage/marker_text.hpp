// The text of a marker. The first line says what it is. The next two lines are written in turn and say how far the log
// was flushed and what the file was like then, so that one of them is complete at any time. A third is about programs
// that were allowed to ignore the marker. Then comes JSON. Specified in docs/formats/log.md; change both together.
#pragma once

#include <string>

#include "stage/marker.hpp"

namespace tapioca::stage {

inline constexpr std::string_view marker_first_line = "tapioca stage 2\n";
inline constexpr std::size_t marker_slot_bytes = 145;
inline constexpr std::size_t marker_slots = 3;
/// The size of the shortest marker of any version.
inline constexpr std::size_t least_marker_bytes = marker_first_line.size() + 2 * 38;

/// One of the lines that are rewritten.
std::string slot_of(Noted const& noted);

/// The whole text. Fails if a host name or a path is not UTF-8, which JSON cannot contain. The target's path is for
/// information only.
core::Result<std::string> text_of(Marker const& marker);

/// Parses such a text, without the target's path, which may differ on this host.
core::Result<Marker> marker_in(std::string const& text);

}  // namespace tapioca::stage
