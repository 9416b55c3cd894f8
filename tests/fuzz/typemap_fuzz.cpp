// Datatypes as typemaps: any nesting of blocks, loops, lists and sequences, compared with the list of all its bytes.
#include <vector>

#include "fuzz/fuzz.hpp"
#include "pattern/typemap.hpp"
#include "support/layouts.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using fuzz::Input;
using pattern::Typemap;

constexpr std::size_t most_bytes = 1024;

/// A typemap and its displacements in data order.
struct Built {
    Typemap map;
    std::vector<std::int64_t> bytes;
};

std::size_t at(std::int64_t position)
{
    return static_cast<std::size_t>(position);
}

Built build(Input& input, int depth)
{
    Built built;
    auto const kind = depth == 0 ? 0 : input.pick(0, 5);
    if (kind == 0) {
        auto const length = input.pick(0, 40);
        built.map = Typemap::block(length);
        for (std::int64_t i = 0; i < length; ++i) built.bytes.push_back(i);
    } else if (kind == 1) {
        std::vector<Typemap::Block> blocks;
        for (auto left = input.pick(0, 80); left > 0; --left) {
            blocks.push_back({input.take<std::int8_t>(), input.pick(0, 9)});
            for (std::int64_t i = 0; i < blocks.back().length; ++i)
                built.bytes.push_back(blocks.back().displacement + i);
        }
        built.map = Typemap::list(blocks);
    } else if (kind <= 3) {
        auto const body = build(input, depth - 1);
        auto const most = static_cast<std::int64_t>(most_bytes / std::max<std::size_t>(body.bytes.size(), 1));
        auto const count = std::min(input.pick(0, 200), most);
        // The steps that make something of it: side by side, no step, any.
        auto const span = body.map.end() - body.map.begin();
        auto const how = input.pick(0, 3);
        auto const step = how == 0   ? body.map.bytes()
                          : how == 1 ? span
                          : how == 2 ? input.take<std::int16_t>()
                                     : input.take<std::int8_t>();
        built.map = Typemap::loop(count, step, body.map);
        for (std::int64_t i = 0; i < count; ++i)
            for (auto const byte : body.bytes) built.bytes.push_back(byte + i * step);
    } else {
        std::vector<Typemap::Member> parts;
        auto const same = build(input, depth - 1);
        std::int64_t end = 0;
        for (auto left = input.pick(0, 5); left > 0 && built.bytes.size() <= most_bytes; --left) {
            auto const body = input.pick(0, 1) == 0 ? same : build(input, depth - 1);
            auto const how = input.pick(0, 2);
            auto const place = how == 0 ? end - body.map.begin() : input.take<std::int16_t>();
            end = place + body.map.end();
            parts.push_back({place, body.map});
            for (auto const byte : body.bytes) built.bytes.push_back(byte + place);
        }
        built.map = Typemap::sequence(parts);
    }
    return built;
}

std::vector<Typemap::Block> stretches(std::vector<std::int64_t> const& bytes)
{
    std::vector<Typemap::Block> blocks;
    for (auto const byte : bytes) {
        if (blocks.empty() || blocks.back().displacement + blocks.back().length != byte) blocks.push_back({byte, 0});
        ++blocks.back().length;
    }
    return blocks;
}

bool ascend(std::vector<std::int64_t> const& bytes)
{
    return std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()) == bytes.end();
}

void check_facts(Built const& built)
{
    auto const& bytes = built.bytes;
    auto const& map = built.map;
    auto const blocks = stretches(bytes);
    claim(map.bytes() == static_cast<std::int64_t>(bytes.size()), "bytes are counted");
    claim(map.begin() == (bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end())), "the lowest byte");
    claim(map.end() == (bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()) + 1), "the highest byte");
    claim(map.blocks() == static_cast<std::int64_t>(blocks.size()), "stretches are counted");
    claim(map.contiguous() == (blocks.size() == 1), "one stretch is contiguous");
    claim(map.ascending() == ascend(bytes), "ascending if its bytes ascend");
    auto const list = Typemap::list(blocks);
    if (blocks.size() <= 64) claim(map == list && map.hash() == list.hash(), "few blocks are one list");
}

/// Data bytes [from, to), packed and unpacked.
void check_packing(Built const& built, std::int64_t from, std::int64_t to)
{
    auto const begin = built.map.begin();
    if (built.map.end() - begin > (1 << 20)) return;
    std::vector<std::byte> memory(at(built.map.end() - begin));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 256);
    std::vector<std::byte> packed(at(to - from));
    std::vector<std::byte> expected;
    for (auto i = from; i < to; ++i) expected.push_back(memory[at(built.bytes[at(i)] - begin)]);
    pattern::pack(built.map, memory.data() - begin, from, to - from, packed.data());
    claim(packed == expected, "packed as named");

    std::vector<std::byte> back(memory.size());
    std::vector<std::byte> placed(memory.size());
    for (auto i = from; i < to; ++i) placed[at(built.bytes[at(i)] - begin)] = packed[at(i - from)];
    pattern::unpack(built.map, back.data() - begin, from, to - from, packed.data());
    claim(back == placed, "unpacked as named");
}

void check_access(Built const& tile, Input& input)
{
    pattern::TiledView view;
    view.displacement = input.number();
    view.extent = tile.map.end() - tile.map.begin() + input.take<std::int8_t>();
    view.tile = tile.map;
    auto const size = static_cast<std::int64_t>(tile.bytes.size());
    auto const from = input.number();
    auto const bytes = std::min<std::int64_t>(input.number(), most_bytes);
    auto const access = pattern::access_of(view, from, bytes);
    if (!access) {
        fuzz::claim_one_line(access.error());
        bool const plain = view.extent >= tile.map.end() - tile.map.begin() && ascend(tile.bytes) && size > 0;
        bool const small = from >= 0 && from < (1 << 20) && view.displacement >= 0 && view.displacement < (1 << 20);
        claim(!plain || !small || bytes < 0 || view.displacement + tile.map.begin() < 0,
              "an ordinary view can be accessed");
        return;
    }
    if (bytes == 0) return;
    auto const expanded = input.pick(0, 60);
    auto const variable = pattern::variable_of(*access, expanded);
    claim(variable.status() && variable.bytes() == static_cast<std::uint64_t>(bytes), "a variable of all bytes");
    auto places = test::walk(variable);
    std::sort(places.begin(), places.end(), [](auto const& a, auto const& b) { return a.buffer < b.buffer; });
    claim(places.size() == at(bytes), "every byte is somewhere");
    for (std::int64_t i = 0; i < bytes; ++i) {
        auto const file = view.displacement + (from + i) / size * view.extent + tile.bytes[at((from + i) % size)];
        claim(places[at(i)] == test::Place{file, i}, "every byte is where the view has it");
        claim(view.offset_of(from + i) == file, "the view knows where it is");
    }
    for (auto const& layout : variable.layouts()) {
        auto const all = test::places(layout);
        for (std::size_t i = 1; i < all.size(); ++i) claim(all[i].file > all[i - 1].file, "layouts ascend");
        claim(layout.end() == all.back().file + 1, "and know their end");
        auto const limit = all[at(input.pick(0, 255)) % all.size()].file;
        pattern::LayoutCursor cursor(layout);
        cursor.seek(limit);
        claim(cursor.position() == limit, "a cursor finds a byte");
        std::vector<test::Place> rest;
        for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
            for (auto const& place : test::places(run)) rest.push_back(place);
        auto const first = std::find_if(all.begin(), all.end(), [&](auto const& p) { return p.file == limit; });
        claim(std::equal(first, all.end(), rest.begin(), rest.end()), "and goes on from there");
        if (layout.in_order) claim(layout.bytes_before(limit) == first - all.begin(), "bytes before are counted");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    Input input(data, size);
    auto built = build(input, 4);
    auto const shift = input.take<std::int8_t>();
    built.map = built.map.shifted(shift);
    for (auto& byte : built.bytes) byte += shift;
    check_facts(built);
    auto const bytes = built.map.bytes();
    check_packing(built, 0, bytes);
    auto const from = bytes * input.pick(0, 255) / 255;
    check_packing(built, from, from + (bytes - from) * input.pick(0, 255) / 255);
    check_access(built, input);
    return 0;
}
