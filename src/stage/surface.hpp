// Surface: the logged bytes that lie over the file for reads on this node, kept up to date while ranks go on writing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "stage/overlay.hpp"

namespace tapioca::stage {

/// One rank's part of the surface, in layers: later requests lie over earlier ones. Lower layers are not read again
/// until those above them have grown as large.
class Pile {
public:
    /// Returns what the rank has logged from a position on.
    using Read = std::function<core::Result<std::shared_ptr<LogContent>>(LogContent::Mark const&)>;
    /// Reads what is new. Returns how many entries were read.
    core::Result<std::uint64_t> update(std::uint32_t rank, Read const& read);
    /// Visits the pieces of [begin, end), each byte once. Pieces that are in the file by now have no data.
    void look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit) const;
    /// The end of the last piece that has data.
    [[nodiscard]] std::int64_t end() const;

private:
    struct Layer {
        LogContent::Mark from;
        std::uint64_t entries;
        Overlay overlay;
        bool gone = false;  ///< was handed over, and is in the file
    };
    std::vector<Layer> layers_;  ///< lowest first
    LogContent::Mark to_;        ///< the position up to which requests are included
};

class Surface {
public:
    /// `everything`: the contents of all ranks' logs, for places that several ranks have written.
    using Everything = std::function<core::Result<std::shared_ptr<LogContent>>()>;
    void ask_for_everything_by(Everything everything) { everything_ = std::move(everything); }

    /// To be called when a rank may have logged something. Returns how many entries were read.
    core::Result<std::uint64_t> update(std::uint32_t rank, Pile::Read const& read);
    /// The pieces of [begin, end) that are in the logs.
    core::Status look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit);
    /// The pieces of [begin, end) that one rank has written; those that are in the file by now have no data.
    void look_at(std::uint32_t rank, std::int64_t begin, std::int64_t end, Overlay::Visit const& visit) const;
    /// The end of the last of these pieces.
    [[nodiscard]] std::int64_t end() const;

private:
    struct SurfacePiece {
        std::int64_t begin;
        std::int64_t end;
        std::byte const* data;
        std::uint32_t rank;
    };
    /// True if several ranks have written the same bytes, and not all of these are in the file.
    [[nodiscard]] static bool disputed(std::vector<SurfacePiece>& pieces);

    Everything everything_;
    std::map<std::uint32_t, Pile> piles_;  ///< by rank
    std::optional<Overlay> whole_;         ///< the contents of all logs, once they were needed
    std::vector<SurfacePiece> pieces_;     ///< pieces of one call of look()
};

}  // namespace tapioca::stage
