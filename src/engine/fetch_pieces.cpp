#include "engine/fetch_pieces.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "engine/wire.hpp"

namespace tapioca::engine {

namespace {

/// Larger pieces are received straight into the caller's memory.
constexpr std::int64_t straight_from = 64 << 10;
/// A request is not longer than some 64 KiB.
constexpr std::size_t most_pieces = 4096;
/// Pieces with smaller gaps between them are read together.
constexpr std::int64_t wide_gap = 4096;

/// Appends a piece to runs, as one of a regular row if it can be.
void add_piece(std::int64_t position, std::int64_t length, std::vector<pattern::PieceRun>& runs)
{
    if (!runs.empty()) {
        auto& last = runs.back();
        if (last.count == 1 && last.offset + last.length == position) {
            last.length += length;
            return;
        }
        if (last.length == length && (last.count == 1 || last.offset + last.count * last.stride == position)) {
            if (last.count == 1) last.stride = position - last.offset;
            ++last.count;
            return;
        }
    }
    runs.push_back({position, length, 0, 1, 0, 0});
}

}  // namespace

void arrange(std::vector<FetchPiece>& pieces)
{
    std::sort(pieces.begin(), pieces.end(), [](FetchPiece const& a, FetchPiece const& b) {
        return std::tie(a.server, a.source, a.position) < std::tie(b.server, b.source, b.position);
    });
    std::size_t kept = 0;
    for (auto const& piece : pieces) {
        if (kept > 0) {
            auto& last = pieces[kept - 1];
            if (last.server == piece.server && last.source == piece.source &&
                last.position + last.length == piece.position && last.to + last.length == piece.to) {
                last.length += piece.length;
                continue;
            }
        }
        pieces[kept++] = piece;
    }
    pieces.resize(kept);
}

FetchRequest FetchCutter::next()
{
    FetchRequest request;
    request.source = rest_.front().source;
    request.skipped = skipped_;
    auto const remaining = rest_.front().length - skipped_;
    if (remaining >= straight_from) {
        request.bytes = std::min(remaining, most_fetched);
        request.pieces = rest_.first(1);
        request.straight = rest_.front().to + skipped_;
        skipped_ += request.bytes;
        if (skipped_ < rest_.front().length) return request;
        rest_ = rest_.subspan(1);
        skipped_ = 0;
        return request;
    }
    std::size_t count = 0;
    for (; count < std::min(rest_.size(), most_pieces); ++count) {
        auto const& piece = rest_[count];
        auto const length = piece.length - (count == 0 ? skipped_ : 0);
        if (piece.source != request.source || length >= straight_from || request.bytes + length > most_fetched) break;
        request.bytes += length;
    }
    request.pieces = rest_.first(count);
    rest_ = rest_.subspan(count);
    skipped_ = 0;
    return request;
}

void FetchRequest::encode(std::vector<std::byte>& to) const
{
    std::vector<pattern::PieceRun> runs;
    auto skip = skipped;
    for (auto const& piece : pieces) {
        add_piece(piece.position + skip, straight ? bytes : piece.length - skip, runs);
        skip = 0;
    }
    wire::encode(runs, 0, to);
}

void FetchRequest::scatter(std::byte const* from) const
{
    auto skip = skipped;
    for (auto const& piece : pieces) {
        auto const length = static_cast<std::size_t>(piece.length - skip);
        std::memcpy(piece.to + skip, from, length);
        from += length;
        skip = 0;
    }
}

core::Status FetchReader::read(std::uint64_t source, std::span<std::byte const> runs, std::span<std::byte> to)
{
    core::Status status;
    std::size_t filled = 0;    // by groups that were read
    std::size_t expected = 0;  // with the group that is being collected
    auto const finish_group = [&] {
        if (!group_.empty() && status) status = read_group(source, to.data() + filled);
        group_.clear();
        filled = expected;
    };
    wire::Runs list(runs);
    for (pattern::PieceRun run; status && list.next(run);) {
        if (run.length > static_cast<std::int64_t>(to.size() - expected) / run.count) break;
        for (std::int64_t i = 0; i < run.count; ++i) {
            ReadPlace const place = {run.offset + i * run.stride, run.length};
            auto const end = place.position + place.length;
            if (group_.empty() || place.position < begin_ || place.position - end_ >= wide_gap ||
                end - begin_ > most_fetched) {
                finish_group();
                begin_ = end_ = place.position;
            }
            group_.push_back(place);
            end_ = std::max(end_, end);
            expected += static_cast<std::size_t>(place.length);
        }
    }
    finish_group();
    if (status && filled != to.size())
        return core::fail(Errc::io, "another rank's request for data cannot be understood");
    return status;
}

/// Reads the places of the group one after the other to `to`.
core::Status FetchReader::read_group(std::uint64_t source, std::byte* to)
{
    ++reads_;
    auto const bytes = static_cast<std::size_t>(end_ - begin_);
    if (group_.size() == 1) return read_(source, begin_, std::span(to, bytes));
    if (sieve_.empty()) sieve_.resize(most_fetched);
    if (auto status = read_(source, begin_, std::span(sieve_).first(bytes)); !status) return status;
    for (auto const& place : group_) {
        std::memcpy(to, sieve_.data() + (place.position - begin_), static_cast<std::size_t>(place.length));
        to += place.length;
    }
    return {};
}

}  // namespace tapioca::engine
