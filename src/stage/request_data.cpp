#include "stage/request_data.hpp"

#include <algorithm>
#include <memory>

#include "core/copy.hpp"
#include "core/units.hpp"
#include "stage/checksum.hpp"

namespace tapioca::stage {

core::Result<std::uint64_t> RequestData::store(std::uint64_t bytes, Store const& store) const
{
    if (!places_) {
        if (auto const status = store(0, {first_, bytes}); !status) return tl::unexpected(status.error());
        return checksum_of(first_, bytes);
    }
    constexpr std::uint64_t most_at_once = 256 * core::KiB;
    auto const chunks = core::divide_up(bytes, most_at_once);
    auto const at_once = core::divide_up(bytes, chunks);
    auto const buffer = std::make_unique_for_overwrite<std::byte[]>(at_once);
    RunningChecksum checksum;
    pattern::LayoutCursor cursor(*places_);
    for (std::uint64_t at = 0; at < bytes; at += at_once) {
        auto const end = std::min(bytes, at + at_once);
        auto* to = buffer.get();
        for (pattern::PieceRun run; cursor.next(static_cast<std::int64_t>(end), run); to += run.length * run.count)
            core::copy_pieces(to, first_ + run.buffer, run.length, run.count, run.length, run.buffer_stride);
        std::span<std::byte const> const chunk(buffer.get(), end - at);
        if (auto const status = store(at, chunk); !status) return tl::unexpected(status.error());
        if (chunks == 1) return checksum_of(chunk.data(), chunk.size());
        checksum.add(chunk.data(), chunk.size());
    }
    return checksum.value();
}

}  // namespace tapioca::stage
