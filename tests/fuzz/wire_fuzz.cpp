// The messages between nodes: runs and entries are decoded as they were encoded, and invalid bytes do no harm.
#include <vector>

#include "engine/wire.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using fuzz::Input;
using pattern::PieceRun;
namespace wire = engine::wire;

std::vector<PieceRun> decoded(std::span<std::byte const> bytes)
{
    std::vector<PieceRun> result;
    wire::Runs runs(bytes);
    for (PieceRun run; runs.next(run);) result.push_back(run);
    return result;
}

void check_anything(std::span<std::byte const> bytes)
{
    std::int64_t buffer = 0;
    for (auto const& run : decoded(bytes)) {
        claim(run.length > 0 && run.count > 0, "a run has bytes");
        claim(run.buffer == buffer, "packed from 0 on");
        buffer += run.length * run.count;
    }
    for (auto rest = bytes; !rest.empty();) {
        auto const before = rest.size();
        auto const entry = wire::take_entry(rest);
        claim(rest.size() < before, "every entry takes bytes");
        claim(entry.runs.size() + entry.data.size() + rest.size() <= before, "and no more than there are");
    }
}

void check_round_trip(Input& input)
{
    std::vector<PieceRun> runs;
    auto const origin = input.number() & ((std::int64_t{1} << 50) - 1);
    auto place = origin;
    for (auto left = input.pick(0, 30); left > 0; --left) {
        PieceRun run;
        run.offset = place + input.take<std::int8_t>();
        run.length = 1 + (input.number() & 0xFFFFFF);
        run.count = 1 + (input.number() & 0xFFFF);
        run.stride = run.length + input.take<std::int16_t>();
        runs.push_back(run);
        place = run.offset + (run.count - 1) * run.stride + run.length;
    }
    std::vector<std::byte> message;
    std::vector<std::byte> bytes;
    wire::encode(runs, origin, bytes);
    auto const back = decoded(bytes);
    claim(back.size() == runs.size(), "as many runs come out");
    for (std::size_t i = 0; i < runs.size(); ++i)
        claim(back[i].offset == runs[i].offset - origin && back[i].length == runs[i].length &&
                  back[i].count == runs[i].count && (runs[i].count == 1 || back[i].stride == runs[i].stride),
              "as they went in");

    auto const put = [&](void const* data, std::size_t size) {
        auto const* const first = static_cast<std::byte const*>(data);
        message.insert(message.end(), first, first + size);
    };
    std::vector<wire::EntryHeading> headings;
    for (auto left = input.pick(0, 4); left > 0; --left) {
        wire::EntryHeading heading;
        heading.run_bytes = static_cast<std::uint32_t>(bytes.size());
        heading.way = static_cast<wire::DataPath>(input.pick(0, 3));
        heading.rank = input.take<std::int16_t>();
        heading.data_bytes = static_cast<std::uint32_t>(input.pick(0, 50));
        headings.push_back(heading);
        put(&heading, sizeof heading);
        put(bytes.data(), bytes.size());
        std::vector<std::byte> const data(heading.data_bytes, std::byte{7});
        if (heading.way == wire::DataPath::inside) put(data.data(), data.size());
    }
    std::span<std::byte const> rest = message;
    for (auto const& heading : headings) {
        auto const entry = wire::take_entry(rest);
        claim(entry.heading.way == heading.way && entry.heading.rank == heading.rank, "a heading is kept");
        claim(std::equal(entry.runs.begin(), entry.runs.end(), bytes.begin(), bytes.end()), "so are the runs");
        claim(entry.data.size() == (heading.way == wire::DataPath::inside ? heading.data_bytes : 0), "and the data");
    }
    claim(rest.empty(), "nothing is left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    check_anything(std::as_bytes(std::span(data, size)));
    Input input(data, size);
    check_round_trip(input);
    return 0;
}
