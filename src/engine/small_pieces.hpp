// SmallPieces: moves pieces that are adjacent in the file, but not in memory, through a buffer that stays in the cache.
// Local.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

class SmallPieces {
public:
    static constexpr std::int64_t small_bytes = 4096;

    [[nodiscard]] bool empty() const { return parts_.empty(); }
    /// Where the pieces lie in the file, relative to the base.
    [[nodiscard]] std::int64_t begin() const { return parts_.front().run.offset; }
    [[nodiscard]] std::int64_t end() const { return begin() + used_; }
    /// The part of the buffer that is in use.
    [[nodiscard]] std::span<std::byte> bytes() { return {buffer_.get(), static_cast<std::size_t>(used_)}; }

    /// Takes as many pieces from the beginning of `run` as there is room for. Returns false if there is no room.
    /// @pre the run's pieces are adjacent in the file, and begin at end() unless empty()
    bool add(pattern::PieceRun& run, VariableBuffer const& variable_buffer)
    {
        if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
        auto const pieces = std::min(run.count, (buffer_bytes - used_) / run.length);
        if (pieces == 0) return false;
        auto part = run;
        part.count = pieces;
        parts_.push_back({part, &variable_buffer});
        used_ += pieces * run.length;
        run.count -= pieces;
        run.offset += pieces * run.stride;
        run.buffer += pieces * run.buffer_stride;
        return true;
    }

    /// Copies from memory to the buffer.
    void gather()
    {
        auto* to = buffer_.get();
        for (auto const& part : parts_) to = engine::gather(to, part.run, part.variable_buffer->data);
    }

    /// Copies the first `read` bytes from the buffer to memory, and counts them for their variables.
    void scatter(std::uint64_t read, std::vector<std::uint64_t>& received) const
    {
        auto left = static_cast<std::int64_t>(read);
        std::byte const* from = buffer_.get();
        for (auto const& [all, variable_buffer] : parts_) {
            auto whole = all;
            whole.count = std::min(all.count, left / all.length);
            from = engine::scatter(from, whole, variable_buffer->data);
            auto bytes = whole.count * all.length;
            if (whole.count < all.count) {  // the file ends here
                pattern::PieceRun const rest{0, left - bytes, 0, 1, all.buffer + whole.count * all.buffer_stride, 0};
                from = engine::scatter(from, rest, variable_buffer->data);
                bytes = left;
            }
            received[variable_buffer->variable] += static_cast<std::uint64_t>(bytes);
            left -= bytes;
        }
    }

    void clear()
    {
        parts_.clear();
        used_ = 0;
    }

private:
    static constexpr std::int64_t buffer_bytes = 256 * 1024;

    struct RunOfTrack {
        pattern::PieceRun run;
        VariableBuffer const* variable_buffer;
    };
    std::vector<RunOfTrack> parts_;
    std::unique_ptr<std::byte[]> buffer_;
    std::int64_t used_ = 0;
};

}  // namespace tapioca::engine
