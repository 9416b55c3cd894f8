// Surface: what lies over the file for somebody who reads on this node, kept up to date while ranks go on writing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "stage/overlay.hpp"

namespace tapioca::stage {

/// One rank's part of it: layers, of which what was logged later lies over what was logged before. The lower ones are
/// not looked through again until those above have become as many.
class Pile {
public:
    /// What the rank has logged from a place on.
    using Read = std::function<core::Result<std::shared_ptr<LogContent>>(LogContent::Mark const&)>;
    /// Looks at what is new. How many entries that took.
    core::Result<std::uint64_t> update(std::uint32_t rank, Read const& read);
    /// The pieces of [begin, end), each byte once; those that are in the file by now without data.
    void look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit) const;
    /// Where the last piece ends that has data.
    [[nodiscard]] std::int64_t end() const;

private:
    struct Layer {
        LogContent::Mark from;
        std::uint64_t entries;
        Overlay overlay;
        bool gone = false;  ///< was handed over, and is in the file
    };
    std::vector<Layer> layers_;  ///< the lowest first
    LogContent::Mark to_;        ///< behind all of it
};

class Surface {
public:
    /// `everything`: what all ranks have, for places that several of them have written.
    using Everything = std::function<core::Result<std::shared_ptr<LogContent>>()>;
    void ask_for_everything_by(Everything everything) { everything_ = std::move(everything); }

    /// A rank may have logged something since. How many entries were looked at.
    core::Result<std::uint64_t> update(std::uint32_t rank, Pile::Read const& read);
    /// The pieces of [begin, end) that are in the logs.
    core::Status look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit);
    /// Where the last of them ends.
    [[nodiscard]] std::int64_t end() const;

private:
    struct SurfacePiece {
        std::int64_t begin;
        std::int64_t end;
        std::byte const* data;
        std::uint32_t rank;
    };
    /// True if ranks have written the same bytes, and not all of these are in the file.
    [[nodiscard]] static bool disputed(std::vector<SurfacePiece>& pieces);

    Everything everything_;
    std::map<std::uint32_t, Pile> piles_;  ///< by rank
    std::optional<Overlay> whole_;         ///< all of it, since somebody needed it
    std::vector<SurfacePiece> pieces_;     ///< of one look
};

}  // namespace tapioca::stage
