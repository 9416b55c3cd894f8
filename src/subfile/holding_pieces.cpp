#include "subfile/holding_pieces.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <sys/uio.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

namespace {

/// Pieces from this size on are read straight to their places; copying smaller ones costs less than describing them.
constexpr std::int64_t large_piece = 1024;

tl::unexpected<core::Failure> too_short(Holding const& holding)
{
    return core::fail(Errc::io, fmt::format("{} is shorter than the index says: `tapioca subfile verify` lists what is "
                                            "missing",
                                            subfile_name(holding.subfile)));
}

core::Status read_exactly(int fd, std::int64_t at, std::byte* to, std::int64_t bytes, Holding const& from)
{
    auto const status =
        core::read_all(fd, static_cast<std::uint64_t>(at), {to, static_cast<std::size_t>(bytes)}, "a subfile");
    return !status && status.error().sys_errno == 0 ? too_short(from) : status;
}

/// Reads pieces to their places, with few calls where they follow each other in the subfile.
class Scatter {
public:
    Scatter(Holding const& holding, int fd) : holding_(holding), fd_(fd) {}

    core::Status add(std::byte* to, std::int64_t bytes, std::int64_t at)
    {
        if (count_ > 0 && at != end_)
            if (auto status = finish(); !status) return status;
        if (count_ == 0) at_ = at;
        end_ = at + bytes;
        vectors_[count_++] = {to, static_cast<std::size_t>(bytes)};
        return count_ == vectors_.size() ? finish() : core::Status();
    }
    core::Status finish()
    {
        auto const done =
            core::uninterrupted([&] { return ::preadv(fd_, vectors_.data(), static_cast<int>(count_), at_); });
        if (done < 0) return core::fail_errno(errno, "reading a subfile");
        core::Status status;
        auto left = static_cast<std::size_t>(done);  // a part of what was asked for, in rare cases
        for (std::size_t i = 0; i < count_ && status; ++i) {
            auto const& [to, bytes] = vectors_[i];
            auto const got = std::min(bytes, left);
            if (got < bytes)
                status = read_exactly(fd_, at_ + static_cast<std::int64_t>(got), static_cast<std::byte*>(to) + got,
                                      static_cast<std::int64_t>(bytes - got), holding_);
            left -= got;
            at_ += static_cast<std::int64_t>(bytes);
        }
        count_ = 0;
        return status;
    }

private:
    Holding const& holding_;
    int fd_;
    std::int64_t at_ = 0;   ///< of the vectors in the subfile
    std::int64_t end_ = 0;  ///< one past them
    std::array<iovec, 256> vectors_ = {};
    std::size_t count_ = 0;
};

}  // namespace

Pieces pieces_of(Holding const& holding, std::int64_t begin, std::int64_t end)
{
    Pieces pieces;
    pattern::LayoutCursor cursor(holding.part->layout);
    cursor.seek(begin - holding.shift);
    auto const limit = std::min(end, holding.end) - holding.shift;
    for (pattern::PieceRun run; cursor.next(limit, run);) {
        run.offset += holding.shift;
        run.buffer += holding.position;
        pieces.bytes += run.length * run.count;
        auto const further = run.count > 1 ? (run.count - 1) * run.buffer_stride : 0;
        pieces.first = std::min(pieces.first, run.buffer);
        pieces.last = std::max(pieces.last, run.buffer + further + run.length);
        pieces.runs.push_back(run);
    }
    return pieces;
}

core::Status paint(Holding const& holding, int fd, std::int64_t begin, std::span<std::byte> to)
{
    auto const pieces = pieces_of(holding, begin, begin + static_cast<std::int64_t>(to.size()));
    if (pieces.runs.empty()) return {};
    auto const& first = pieces.runs.front();
    if (pieces.runs.size() == 1 && first.count == 1)
        return read_exactly(fd, first.buffer, to.data() + (first.offset - begin), first.length, holding);
    core::Status status;
    auto const each = [&](auto const& visit) {
        for (auto const& run : pieces.runs) pattern::each_piece(run, visit);
    };
    auto const span = pieces.last - pieces.first;
    if (span == pieces.bytes && first.length >= large_piece) {
        Scatter scatter(holding, fd);
        each([&](std::int64_t offset, std::int64_t length, std::int64_t at) {
            if (status) status = scatter.add(to.data() + (offset - begin), length, at);
        });
        return status ? scatter.finish() : status;
    }
    if (span > 4 * pieces.bytes + most_at_once / 4) {  // far apart in the subfile
        each([&](std::int64_t offset, std::int64_t length, std::int64_t at) {
            if (status) status = read_exactly(fd, at, to.data() + (offset - begin), length, holding);
        });
        return status;
    }
    std::vector<std::byte> data(static_cast<std::size_t>(span));
    status = read_exactly(fd, pieces.first, data.data(), span, holding);
    if (!status) return status;
    each([&](std::int64_t offset, std::int64_t length, std::int64_t at) {
        std::memcpy(to.data() + (offset - begin), data.data() + (at - pieces.first), static_cast<std::size_t>(length));
    });
    return {};
}

bool cover(std::vector<Holding> const& holdings, std::int64_t begin, std::int64_t end)
{
    constexpr std::int64_t many = 256;
    bool disjoint = true;
    bool looked = true;  // at all pieces
    Gaps gaps(begin, end);
    std::int64_t sum = 0;
    for (auto const& holding : holdings) {
        auto const pieces = pieces_of(holding, begin, end);
        std::int64_t count = 0;
        for (auto const& run : pieces.runs) count += run.count;
        sum += pieces.bytes;
        bool const beside = holding.form->disjoint && holding.epoch == holdings.front().epoch;
        disjoint = disjoint && beside;
        looked = looked && count <= many;
        if (looked) gaps.take_out(pieces.runs, [](auto...) {});
    }
    return looked ? gaps.left().empty() : disjoint && sum == end - begin;
}

std::vector<FilePart> latest_parts(std::vector<Holding> const& holdings, std::int64_t begin, std::int64_t end,
                                   bool with_rest)
{
    std::vector<FilePart> found;
    Gaps gaps(begin, end);
    for (auto holding = holdings.rbegin(); holding != holdings.rend() && !gaps.left().empty(); ++holding)
        gaps.take_out(pieces_of(*holding, begin, end).runs, [&](std::int64_t from, std::int64_t to, std::int64_t at) {
            found.push_back({from, to - from, holding->subfile, at});
        });
    if (with_rest)
        for (auto const& [from, to] : gaps.left()) found.push_back({from, to - from, in_rest, from});
    std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.offset < b.offset; });
    return found;
}

}  // namespace tapioca::subfile
