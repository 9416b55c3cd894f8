// What failed steps have left behind the last chunk of a subfile.
#pragma once

#include <cstdint>

#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

/// Cuts off what lies behind the last chunk in the subfiles of the job that `contents` names as the writer, and returns
/// how many bytes that were. To be called by whoever has the set's lock, when nobody adds chunks any more. Subfiles of
/// earlier jobs stay as they are, because a reader may still have the index of that time, and so do those that lie, or
/// may have lain, on a tier, because a drain compares the two. `contents` must know the journals. Where there are no
/// locks, nothing is cut off: then nothing says that the job has ended. Local.
std::uint64_t cut_unused_tails(int directory, SetContents const& contents, bool on_tier);

}  // namespace tapioca::subfile
