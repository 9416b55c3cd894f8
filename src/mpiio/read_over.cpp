// Staged: reads. Independent reads return the contents of the file, overlaid with what this node's ranks have in their
// logs. Collective reads take everything from the logs of all ranks, or come after a flush.
#include <algorithm>
#include <vector>

#include "mpiio/error_class.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/sieve.hpp"
#include "mpiio/staged.hpp"

namespace tapioca::mpiio {

namespace {

/// Loads bytes of the file from `begin` on, with what is in the logs laid over them.
core::Status load_over(target::Target& target, stage::Surface& surface, std::int64_t begin, std::span<std::byte> to)
{
    auto const end = begin + static_cast<std::int64_t>(to.size());
    std::int64_t logged = 0;
    auto const status =
        surface.look(begin, end, [&](std::int64_t, std::int64_t length, std::byte const*) { logged += length; });
    if (!status) return status;
    if (logged < end - begin)
        if (auto loaded = load(target, begin, to); !loaded) return loaded;
    return surface.look(begin, end, [&](std::int64_t at, std::int64_t length, std::byte const* data) {
        std::copy_n(data, length, to.begin() + (at - begin));
    });
}

}  // namespace

/// Whether this node's logs may change the result of a read or where it ends. Local.
bool Staged::concerns(PreparedAccess const& part)
{
    if (!part.obstacle.empty() || part.bytes == 0) return false;
    auto const range = staging().stage().range();
    if (part.access.origin >= range.end) return false;
    if (part.end > range.begin) return true;
    auto* const target = file().target();
    auto const size = target ? target->size().value_or(0) : 0;
    return part.end > static_cast<std::int64_t>(size);
}

/// An independent read through this log's own handle or another handle of the file. It is passed on, unless it concerns
/// a log of this node. Local. @pre the log exists and is locked
AccessOutcome Staged::read_over(ProgramFile& through, DataAccess const& request)
{
    auto part = look_at(through, request);
    auto const found = concerns(part) ? variable_of(part) : std::nullopt;
    if (!found && !part.obstacle.empty()) {
        through.calls.passed(request.call, part.obstacle);
        auto const status = staging().hand_over(stage::Stage::PastTheLog::read, false);
        return {!status, outcome_alone(status), 0};
    }
    if (!found) {
        through.calls.passed(request.call);
        return {};
    }
    try {
        auto const read = read_pieces(*found, part);
        if (!read) return {true, outcome_alone(tl::unexpected(read.error())), 0};
        part.unpack(request, *read);
        through.calls.served(request.call);
        move_pointer(through, request, part);
        return {true, MPI_SUCCESS, *read};
    } catch (std::exception const&) {
        return {true, MPI_ERR_NO_MEM, 0};
    }
}

/// Returns how many bytes were read. Local.
core::Result<std::int64_t> Staged::read_pieces(ShapeCache::Match const& found, PreparedAccess const& part)
{
    auto* const target = file().target();
    if (!target) return tl::unexpected(file().target_status().error());
    auto in_file = target->size();
    if (!in_file) return tl::unexpected(in_file.error());
    bool const beyond = part.end > static_cast<std::int64_t>(*in_file);  // then any rank's last byte may be the end
    auto const surface = staging().stage().surface(part.access.origin, beyond ? pattern::no_offset : part.end);
    if (!surface) return tl::unexpected(surface.error());
    if (beyond) in_file = target->size();  // once more: a rank may have brought its log's bytes to the file meanwhile
    if (!in_file) return tl::unexpected(in_file.error());
    auto const size = static_cast<std::int64_t>(*in_file);
    auto const load = [&](std::int64_t begin, std::span<std::byte> to) {
        return load_over(*target, **surface, begin, to);
    };
    Sieve sieve(load, std::max(size, (*surface)->end()), part.data);
    each_piece(found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        sieve.take(offset, length, place);
    });
    return sieve.finish();
}

/// A collective read. Returns nothing if it is to be read from the file, which then has all of it. Collective.
std::optional<AccessOutcome> Staged::read_from_logs(DataAccess const& request)
{
    auto part = look_at(program_, request);
    bool const reads = part.obstacle.empty() && part.bytes > 0;
    std::lock_guard const lock(mutex_);
    auto const wanted = [&]() -> std::optional<std::vector<flush::WantedPiece>> {
        std::vector<flush::WantedPiece> pieces;
        auto const found = reads ? variable_of(part) : std::nullopt;
        if (!part.obstacle.empty() || !flush::may_be_listed(part.access.shape.pieces(), part.bytes))
            return std::nullopt;
        if (found)
            each_piece(*found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
                pieces.push_back({offset, length, part.data + place});
            });
        return pieces;
    };
    auto const from =
        staging().prepare_read(reads ? part.access.origin : pattern::no_offset, reads ? part.end : 0, false, wanted);
    if (!from) return AccessOutcome{true, failed(from.error()), 0};
    if (*from == flush::ReadFrom::file) return std::nullopt;
    auto const status = staging().read_logs({});
    if (!status) return AccessOutcome{true, class_of(status), 0};
    part.unpack(request, part.bytes);
    program_.calls.served(request.call);
    move_pointer(program_, request, part);
    return AccessOutcome{true, MPI_SUCCESS, part.bytes};
}

}  // namespace tapioca::mpiio
