// Logs as files: a recovery writes, and a reader returns, what the log says, entry by entry.
#include <cstring>
#include <map>
#include <optional>

#include <tapioca/stage.hpp>

#include "fuzz/log_image.hpp"
#include "fuzz/scratch.hpp"
#include "stage/log_content.hpp"
#include "stage/snapshot.hpp"
#include "support/layouts.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using File = std::map<std::int64_t, std::optional<std::byte>>;  ///< nothing: in the target already

struct Said {
    std::uint32_t rank;
    stage::LogRequest request;
    bool handed_over = false;  ///< it only keeps its place
};
/// What there is in an image, up to the first damage of each rank.
struct Told {
    std::vector<Said> all;    ///< whatever is readable
    std::vector<Said> sound;  ///< what counts: it has its data, too, or was handed over to the target
    std::size_t lost = 0;     ///< how many have not
    bool small = true;        ///< enough to look at every byte
};

/// `said`: a Note or an Entry.
bool has_data(fuzz::LogImage const& log, auto const& said)
{
    return said.position >= stage::head_bytes && said.position + said.data_bytes <= log.data.size();
}

stage::LogEntry head_of(std::span<std::byte const> bytes)
{
    stage::LogEntry entry;
    std::memcpy(&entry, bytes.data(), sizeof entry);
    return entry;
}

/// A rank's requests since it has last handed over.
struct Since {
    std::vector<Said> requests;
    std::size_t sound = 0;  ///< so many of them, from the first
    std::size_t lost = 0;
    bool whole = true;

    void add(Said said, bool has_its_data)
    {
        whole = whole && has_its_data;
        requests.push_back(std::move(said));
        whole ? ++sound : ++lost;
    }
    void hand_over(Told& told)
    {
        for (auto& said : requests) {
            said.handed_over = true;
            told.sound.push_back(std::move(said));
        }
        *this = {};
    }
    void end(Told& told)
    {
        for (std::size_t i = 0; i < sound; ++i) told.sound.push_back(std::move(requests[i]));
        told.lost += lost;
    }
};

Told listen(stage::LogImage const& image, fuzz::LogImage const& log)
{
    Told told;
    std::uint64_t bytes = 0;
    for (auto const rank : image.ranks()) {
        stage::LogImage::EntryCursor cursor;
        std::string damage;
        bool readable = true;
        Since since;
        for (auto entry = image.next(rank, cursor, damage); !entry.empty(); entry = image.next(rank, cursor, damage)) {
            auto request = stage::decode(entry, image.seed());
            if (!request) {  // and what follows is lost as well, unless the rank has handed over all that comes before
                readable = since.whole = false;
                ++since.lost;
                damage = "refused";
                if (head_of(entry).flags & stage::flag_gone) break;
                damage.clear();
                continue;
            }
            auto const& note = request->note;
            if (readable) told.all.push_back({rank, *request});
            bytes += std::min<std::uint64_t>(note.data_bytes, 1 << 20);
            if (request->gone()) {
                since.hand_over(told);
                continue;
            }
            bool const whole = has_data(log, note) && stage::checksum_of(log.data.data() + note.position,
                                                                         note.data_bytes) == note.data_checksum;
            since.add({rank, std::move(*request)}, whole);
        }
        bool const damaged = !damage.empty() || !image.damage().empty();
        if (damaged && image.hands_over_behind(rank, cursor)) since.hand_over(told);
        since.end(told);
    }
    told.small = bytes <= 4000;
    return told;
}

/// The file after all sound requests, earlier epochs first.
File expected_file(Told told, fuzz::LogImage const& log)
{
    std::stable_sort(told.sound.begin(), told.sound.end(),
                     [](auto const& a, auto const& b) { return a.request.note.epoch < b.request.note.epoch; });
    File file;
    for (auto const& [rank, request, handed_over] : told.sound)
        for (auto const& byte : test::places(request.layout)) {
            auto& there = file[byte.file];
            there.reset();
            if (!request.stored() && !handed_over)
                there = log.data[request.note.position + static_cast<std::uint64_t>(byte.buffer)];
        }
    std::erase_if(file, [](auto const& byte) { return !byte.second; });
    return file;
}

File written_file(stage::Batch const& batch)
{
    File file;
    for (auto const& variable : batch.variables)
        for (auto const& byte : test::walk(*variable)) file[byte.file] = batch.data[byte.buffer];
    return file;
}

void check_content(stage::LogPlace const& place, Told const& told, fuzz::LogImage const& log)
{
    stage::LogContent content;
    if (auto const status = content.add(place); !status) return fuzz::claim_one_line(status.error());
    for (auto const& what : content.damage()) fuzz::claim_one_line(what);
    auto const bad = content.verify();
    for (auto const& what : bad) fuzz::claim_one_line(what);
    claim(told.lost == 0 || !bad.empty() || !content.damage().empty(), "what cannot be used is told");
    if (!told.small) return;
    auto const batch = content.batch(0, UINT64_MAX - 1);
    claim(written_file(batch) == expected_file(told, log), "a recovery writes what the log says");
}

void check_reader(stage::LogPlace const& place, Told const& told, fuzz::LogImage const& log)
try {
    StageReader reader(place.meta());
    std::size_t next = 0;
    for (int complaints = 0; complaints < 1000;) try {
            auto const request = reader.next();
            if (!request) break;
            claim(next < told.all.size(), "a reader tells what is there");
            auto const& [rank, said, none] = told.all[next++];
            claim(request->rank == rank && request->begin == said.begin() && request->end == said.end() &&
                      request->bytes == said.note.data_bytes && request->epoch == said.note.epoch,
                  "and tells it as it is");
            if (!told.small) continue;
            std::size_t pieces = 0;
            for (auto const& piece : reader.pieces(*request)) pieces += static_cast<std::size_t>(piece.length);
            claim(pieces == test::places(said.layout).size(), "piece by piece");
            bool const readable = !said.gone() && has_data(log, said.note) &&
                                  stage::checksum_of(log.data.data() + said.note.position, said.note.data_bytes) ==
                                      said.note.data_checksum;
            try {
                auto const data = reader.data(*request);
                claim(readable && std::equal(data.begin(), data.end(),
                                             log.data.begin() + static_cast<long>(said.note.position)),
                      "with its data");
            } catch (Error const& error) {
                claim(!readable, "or says why not", error.what());
                fuzz::claim_one_line(error.what());
            }
        } catch (Error const& error) {
            ++complaints;
            fuzz::claim_one_line(error.what());
        }
    claim(next == told.all.size(), "all of it");
} catch (Error const& error) {
    fuzz::claim_one_line(error.what());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    fuzz::Input input(data, size);
    auto const log = fuzz::LogBuilder(input).build();
    fuzz::scratch().write("rank0.meta", log.meta);
    fuzz::scratch().write("rank0.data", log.data);
    stage::LogPlace const place{fuzz::scratch().path(), "rank0"};
    auto const image = stage::LogImage::of(log.meta);
    auto const told = image ? listen(*image, log) : Told();
    check_content(place, told, log);
    check_reader(place, told, log);
    if (auto const snapshot = stage::Snapshot::of(place); !snapshot)
        fuzz::claim_one_line(snapshot.error());
    else
        claim(image.has_value(), "a snapshot has an image");
    return 0;
}
