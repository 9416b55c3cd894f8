// NAME.meta: entries of logs that programs wrote, that were damaged, and that somebody made up.
//
// The input: 'R', then the file as it is; or a recipe for LogBuilder, with checksums that fit.
#include "fuzz/log_image.hpp"
#include "stage/log_image.hpp"
#include "support/layouts.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using Bytes = std::span<std::byte const>;

/// What the engine relies on, byte by byte where that is not too much.
void claim_sound(stage::LogRequest const& request)
{
    auto const& layout = request.layout;
    claim(!layout.entries.empty() && layout.pieces() > 0, "a request has a piece");
    claim(request.begin() >= 0 && request.end() > request.begin(), "it lies in the file");
    claim(request.note.data_bytes > 0, "it has data");
    if (request.note.data_bytes > 2000) return;
    auto const bytes = test::places(layout);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        claim(i == 0 || bytes[i].file > bytes[i - 1].file, "offsets ascend");
        claim(bytes[i].buffer >= 0 && static_cast<std::uint64_t>(bytes[i].buffer) < request.note.data_bytes,
              "its bytes are part of its data");
    }
    claim(request.begin() == bytes.front().file && request.end() == bytes.back().file + 1, "it knows where it is");
    std::vector<test::Place> walked;
    pattern::LayoutCursor cursor(layout);
    for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
        for (auto const& byte : test::places(run)) walked.push_back(byte);
    claim(walked == bytes, "a cursor meets all of it");
}

/// Written again, it is read the same.
void claim_kept(stage::LogRequest const& request, std::uint64_t seed)
{
    auto const variable = request.kind == stage::EntryKind::subarray
                              ? pattern::Variable::from_subarray(0, request.array)
                              : pattern::Variable({request.layout}, static_cast<std::int64_t>(request.note.data_bytes));
    auto const again = stage::decode(stage::encode(variable, 0, request.note, seed), seed);
    if (request.layout.pieces() == 1 && request.kind == stage::EntryKind::layout) return;  // becomes contiguous
    claim(again.has_value(), "what was read can be written", again ? "" : again.error().text);
    claim(again->begin() == request.begin() && again->end() == request.end(), "at the same place");
    claim(again->note.epoch == request.note.epoch && again->note.data_bytes == request.note.data_bytes &&
              again->note.position == request.note.position && again->note.flags == request.note.flags,
          "with the same note");
    if (request.note.data_bytes <= 2000)
        claim(test::places(again->layout) == test::places(request.layout), "byte by byte");
}

void read(Bytes meta)
{
    auto const image = stage::LogImage::of(meta);
    if (!image) return fuzz::claim_one_line(image.error());
    for (auto const& what : image->damage()) fuzz::claim_one_line(what);
    for (auto const rank : image->ranks()) {
        claim(rank < image->head().ranks, "a rank is one of the job's");
        stage::LogImage::EntryCursor cursor;
        std::string damage;
        std::uint64_t entries = 0, epoch = 0;
        for (auto bytes = image->next(rank, cursor, damage); !bytes.empty();
             bytes = image->next(rank, cursor, damage)) {
            claim(bytes.data() >= meta.data() && bytes.data() + bytes.size() <= meta.data() + meta.size(),
                  "entries are part of the file");
            claim(cursor.entries == ++entries && cursor.epoch >= epoch, "entries are in order");
            epoch = cursor.epoch;
            auto const request = stage::decode(bytes, image->seed());
            if (!request) {
                fuzz::claim_one_line(request.error());
                continue;
            }
            claim_sound(*request);
            claim_kept(*request, image->seed());
        }
        if (!damage.empty()) fuzz::claim_one_line(damage);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    if (size > 0 && data[0] == 'R') {
        std::vector<std::uint64_t> aligned((size + 7) / 8);  // as a mapping is
        std::memcpy(aligned.data(), data + 1, size - 1);
        read(std::as_bytes(std::span(aligned)).first(size - 1));
        return 0;
    }
    fuzz::Input input(data, size);
    read(fuzz::LogBuilder(input).build().meta);
    return 0;
}
