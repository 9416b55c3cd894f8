// Merging requests: every byte of the file comes from the latest request that has it, and comes once.
#include <map>
#include <optional>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "stage/merge.hpp"
#include "support/layouts.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using fuzz::Input;

/// Pieces in loops, as the engine relies on them: ascending and disjoint.
pattern::Layout layout_of(Input& input)
{
    pattern::Layout layout;
    std::int64_t end = 0, data = 0;
    for (auto left = 1 + input.pick(0, 3); left > 0; --left) {
        auto const offset = end + input.pick(0, 9);
        auto const length = 1 + input.pick(0, 9);
        auto const gap = input.pick(0, 3);
        layout.in_order = layout.in_order && (layout.entries.empty() || gap == 0);
        layout.entries.push_back({offset, length, data + gap});
        data += gap + length;
        end = offset + length;
    }
    for (auto left = input.pick(0, 2); left > 0; --left) {
        auto const count = 1 + input.pick(0, 4), step = end + input.pick(0, 9);
        layout.dimensions.insert(layout.dimensions.begin(), {count, step, data});
        end = (count - 1) * step + end;
        data *= count;
    }
    layout.base = input.pick(0, 255);
    return layout;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    Input input(data, size);
    std::vector<std::byte> room(1 << 16);
    stage::Merge merge(room.data());
    std::map<std::int64_t, std::optional<std::int64_t>> expected;  // where each byte of the file comes from
    std::int64_t next = 0;
    bool const forward = input.pick(0, 1) == 0;
    for (int turns = 0; turns < 60 && !input.empty(); ++turns) {
        auto const place = forward ? next : input.pick(0, 255) * 64;
        auto const kind = input.pick(0, 3);
        if (kind <= 1) {
            auto const offset = input.pick(0, 255), length = 1 + input.pick(0, 60);
            merge.add(offset, length, room.data() + place);
            for (std::int64_t i = 0; i < length; ++i) expected[offset + i] = place + i;
            next += length + input.pick(0, 1);
        } else {
            auto const layout = layout_of(input);
            for (auto const& byte : test::places(layout)) {
                if (kind == 2)
                    expected[byte.file] = place + byte.buffer;
                else
                    expected[byte.file] = std::nullopt;
                next = std::max(next, place + byte.buffer + 1);
            }
            kind == 2 ? merge.add(layout, room.data() + place) : merge.leave_out(layout);
        }
        if (next > 40'000) break;
    }
    auto const merged = merge.finish();
    std::map<std::int64_t, std::optional<std::int64_t>> found;
    std::int64_t bytes = 0;
    for (auto const& layout : merged.layouts) {
        pattern::LayoutCursor cursor(layout);
        std::int64_t before = -1;
        for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
            for (auto const& byte : test::places(run)) {
                claim(byte.file > before, "layouts ascend");
                before = byte.file;
                claim(found.emplace(byte.file, byte.buffer).second, "a byte comes once");
                ++bytes;
            }
        claim(layout.end() == before + 1, "a layout knows its end");
        if (layout.in_order)
            for (std::size_t i = 1; i < layout.entries.size(); ++i)
                claim(layout.entries[i].buffer == layout.entries[i - 1].buffer + layout.entries[i - 1].length,
                      "in order if the buffer is");
    }
    claim(bytes == merged.bytes, "bytes are counted");
    std::int64_t before = -1;
    for (auto const& [offset, length] : merged.left_out) {
        claim(offset >= before && length > 0, "what is left out ascends");
        before = offset + length;
        for (std::int64_t i = 0; i < length; ++i)
            claim(found.emplace(offset + i, std::nullopt).second, "what is left out is not there");
    }
    claim(found == expected, "the latest wins");
    return 0;
}
