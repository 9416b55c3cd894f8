// LoggedRead: a collective read that takes bytes from the logs of all ranks, without a flush.
//
// Each rank looks after a slice of what is read. There the ranks say what they have written, with the epochs, and what
// they want, and they learn whose log has it. They get it by its place in the file, from the ranks that have it; what
// is in the logs of a node, its ranks read themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/team.hpp"
#include "engine/fetch.hpp"
#include "engine/slices.hpp"
#include "stage/stage.hpp"

namespace tapioca::flush {

/// Where the bytes of a read are.
enum class ReadFrom {
    file,  ///< all of them
    logs,  ///< all of them
    both,  ///< those that are not in the logs are in the file
};

/// Bytes of the file that a rank wants to read, and where they go.
struct WantedPiece {
    std::int64_t begin;
    std::int64_t length;
    std::byte* to;
};

/// Whether so many pieces of so many bytes may be listed one by one: a list should take less memory than the pieces.
bool may_be_listed(std::uint64_t pieces, std::int64_t bytes);

class LoggedRead {
public:
    /// Only `range` of the file is read, by any rank. `coherent`: what a rank has written to the file at once, all
    /// ranks find there. Session and stage must outlive this object.
    LoggedRead(engine::Session& session, stage::Stage& stage, engine::FileSection const& range, bool coherent);

    /// Finds out whose log has the bytes that this rank wants; `wanted` has nothing if this rank cannot read in this
    /// way, or wants pieces that must not be listed. Returns nothing if the logs must be flushed: some rank cannot read
    /// in this way, two ranks have written the same bytes in one epoch, or it is not certain which bytes the file has.
    /// Collective; the same on all ranks. Fails only if a step was abandoned.
    core::Result<std::optional<ReadFrom>> find(std::optional<std::vector<WantedPiece>> const& wanted);
    /// Gets what was found. Collective, like engine::fetch(); nothing may be logged between find() and get().
    core::Status get(core::Status const& local, engine::FetchCounts& counts);

private:
    using Interval = comm::Team::Interval;

    [[nodiscard]] std::optional<std::vector<stage::Claim>> own_claims(bool& doubtful) const;
    /// Adds the bytes of a piece that are in logs to those to be fetched. Returns how many there are.
    std::int64_t take(WantedPiece const& piece, std::vector<Interval> const& owned);

    engine::Session* session_;
    stage::Stage* stage_;
    engine::FileSection range_;
    bool coherent_;
    engine::FileSection near_ = {pattern::no_offset, 0};  ///< where this rank reads the logs of its node by itself
    std::vector<int> servers_;  ///< by rank: which rank is asked for what is in this rank's log
    std::vector<engine::FetchPiece> pieces_;
};

}  // namespace tapioca::flush
