// Staged: independent reads. They return the contents of the file, overlaid with what this node's ranks have in their
// logs.
#include <algorithm>
#include <vector>

#include "mpiio/error_class.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/staged.hpp"

namespace tapioca::mpiio {

namespace {

/// Reads pieces in the order of the file; pieces that lie close together are read with one call.
class Sieve {
public:
    /// `size`: the size of the file including what is in the logs. The pieces' places are relative to `to`.
    Sieve(target::Target& target, stage::Surface& surface, std::int64_t size, std::byte* to)
        : target_(target), surface_(surface), size_(size), to_(to)
    {
    }
    void take(std::int64_t offset, std::int64_t length, std::int64_t place)
    {
        auto const there = std::clamp<std::int64_t>(size_ - offset, 0, length);
        if (there == 0) return;
        bool const near = !pieces_.empty() && offset >= end_ && offset - end_ <= gap && offset + there - begin_ <= most;
        if (!near) read();
        if (pieces_.empty()) begin_ = offset;
        end_ = offset + there;
        pieces_.push_back({offset, there, place});
    }
    /// Returns how many bytes were read; fewer than asked for at the end of the file.
    core::Result<std::int64_t> finish()
    {
        read();
        if (!status_) return tl::unexpected(status_.error());
        return bytes_;
    }

private:
    static constexpr std::int64_t gap = 16 * 1024;  ///< reading this many bytes takes no longer than another call
    static constexpr std::int64_t most = 1024 * 1024;

    struct SievePiece {
        std::int64_t offset;
        std::int64_t length;
        std::int64_t place;
    };

    void read()
    {
        if (pieces_.empty() || !status_) return;
        if (pieces_.size() == 1) {
            load({to_ + pieces_[0].place, static_cast<std::size_t>(pieces_[0].length)});
        } else {
            window_.resize(static_cast<std::size_t>(end_ - begin_));
            load(window_);
            for (auto const& [offset, length, place] : pieces_)
                std::copy_n(window_.begin() + (offset - begin_), length, to_ + place);
        }
        for (auto const& piece : pieces_) bytes_ += piece.length;
        pieces_.clear();
    }
    /// Loads bytes [begin_, end_) of the file; zeros where the file has none.
    void load(std::span<std::byte> to)
    {
        std::int64_t logged = 0;
        status_ =
            surface_.look(begin_, end_, [&](std::int64_t, std::int64_t length, std::byte const*) { logged += length; });
        if (!status_) return;
        if (logged < end_ - begin_) {
            auto const got = target_.read(begin_, to);
            if (!got) status_ = tl::unexpected(got.error());
            if (!got) return;
            std::fill(to.begin() + static_cast<std::ptrdiff_t>(*got), to.end(), std::byte{0});
        }
        status_ = surface_.look(begin_, end_, [&](std::int64_t at, std::int64_t length, std::byte const* data) {
            std::copy_n(data, length, to.begin() + (at - begin_));
        });
    }

    target::Target& target_;
    stage::Surface& surface_;
    std::int64_t size_;
    std::byte* to_;
    std::vector<SievePiece> pieces_;  ///< to be read with the next call
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
    std::vector<std::byte> window_;
    std::int64_t bytes_ = 0;
    core::Status status_;
};

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
        return {!status, class_of(status), 0};
    }
    if (!found) {
        through.calls.passed(request.call);
        return {};
    }
    try {
        auto const read = read_pieces(*found, part);
        if (!read) return {true, class_of(read.error()), 0};
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
    auto const in_file = target->size();
    if (!in_file) return tl::unexpected(in_file.error());
    auto const size = static_cast<std::int64_t>(*in_file);
    bool const beyond = part.end > size;  // then the last byte of any rank may be the end
    auto const surface = staging().stage().surface(part.access.origin, beyond ? pattern::no_offset : part.end);
    if (!surface) return tl::unexpected(surface.error());
    Sieve sieve(*target, **surface, std::max(size, (*surface)->end()), part.data);
    each_piece(found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        sieve.take(offset, length, place);
    });
    return sieve.finish();
}

}  // namespace tapioca::mpiio
