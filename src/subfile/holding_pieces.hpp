// The pieces of a holding: which bytes of a range of the file it has, where they lie in its subfile, and reading them.
// All calls are local.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "subfile/extent_map.hpp"

namespace tapioca::subfile {

/// Bytes of the file that are looked at, or assembled, at a time.
inline constexpr std::int64_t most_at_once = std::int64_t{4} << 20;

/// A stretch of the file that is not spoken for yet.
struct Gap {
    std::int64_t begin, end;
};

/// Ascending, disjoint stretches of the file that nobody has been found for yet.
class Gaps {
public:
    Gaps(std::int64_t begin, std::int64_t end) : gaps_{{begin, end}} {}
    [[nodiscard]] std::vector<Gap> const& left() const { return gaps_; }

    /// Takes out pieces, which must come in ascending order. Calls taken(begin, end, place) for what was still open.
    template <class Taken>
    void take_out(std::vector<pattern::PieceRun> const& runs, Taken const& taken)
    {
        std::vector<Gap> left;
        std::size_t at = 0;
        for (auto const& run : runs)
            pattern::each_piece(run, [&](std::int64_t begin, std::int64_t length, std::int64_t place) {
                auto const end = begin + length;
                while (at < gaps_.size() && gaps_[at].end <= begin) left.push_back(gaps_[at++]);
                for (; at < gaps_.size() && gaps_[at].begin < end; ++at) {
                    auto& gap = gaps_[at];
                    auto const from = std::max(gap.begin, begin);
                    taken(from, std::min(gap.end, end), place + (from - begin));
                    if (gap.begin < begin) left.push_back({gap.begin, begin});
                    if (gap.end <= end) continue;
                    gap.begin = end;
                    break;
                }
            });
        left.insert(left.end(), gaps_.begin() + static_cast<std::ptrdiff_t>(at), gaps_.end());
        gaps_ = std::move(left);
    }

private:
    std::vector<Gap> gaps_;
};

/// The pieces of a holding in [begin, end) of the file, and where their data lies in the subfile.
struct Pieces {
    std::vector<pattern::PieceRun> runs;  ///< offsets in the file, buffer places in the subfile
    std::int64_t bytes = 0;
    std::int64_t first = pattern::no_offset;  ///< of the data in the subfile
    std::int64_t last = 0;                    ///< one past it
};
Pieces pieces_of(Holding const& holding, std::int64_t begin, std::int64_t end);

/// A contiguous part of the file that lies contiguously in one subfile.
struct FilePart {
    std::int64_t offset;
    std::int64_t length;
    std::uint32_t subfile;  ///< in_rest: no chunk has it
    std::int64_t at;        ///< in the subfile or, if no chunk has it, in the file `rest`
};
inline constexpr std::uint32_t in_rest = UINT32_MAX;
/// Where the bytes of [begin, end) lie that count, in ascending order. What no holding has is left out, unless
/// `with_rest`.
std::vector<FilePart> latest_parts(std::vector<Holding> const& holdings, std::int64_t begin, std::int64_t end,
                                   bool with_rest);

/// Reads what a holding has of [begin, begin + size of `to`) from its subfile to its place in `to`.
core::Status paint(Holding const& holding, int fd, std::int64_t begin, std::span<std::byte> to);

/// Whether the holdings are known to have every byte of [begin, end). Many pieces are not looked at: then what they do
/// not have is read in vain.
bool cover(std::vector<Holding> const& holdings, std::int64_t begin, std::int64_t end);

}  // namespace tapioca::subfile
