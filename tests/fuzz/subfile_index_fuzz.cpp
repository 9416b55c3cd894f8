// Indexes and journals of sets of subfiles: those that programs wrote, that were damaged, and that somebody made up.
//
// The input: 'R', then the records of an index as they are, with checksums only if they fit; or a recipe for records
// whose checksums fit. What a reader finds in a directory is compared with what the records say.
#include "fuzz/fuzz.hpp"
#include "fuzz/scratch.hpp"
#include "subfile/set_target.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;
using Bytes = std::vector<std::byte>;

constexpr subfile::SetId identity = {std::byte{0x5E}};
constexpr std::int64_t small = 4096;  ///< offsets and sizes that are looked at

void append(Bytes& to, std::span<std::byte const> bytes)
{
    to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Records from a fuzzer's input.
class Recipe {
public:
    explicit Recipe(fuzz::Input& input) : input_(input) {}

    Bytes records()
    {
        for (auto announced = input_.pick(0, 2); announced > 0; --announced)  // as a rule, both subfiles that there are
            append(all_, subfile::subfile_record(static_cast<std::uint32_t>(announced - 1), 16384, identity));
        for (int turns = 0; turns < 48 && !input_.empty(); ++turns) {
            auto const what = input_.pick(0, 9);
            if (what <= 2)
                append(all_, form());
            else if (what <= 6)
                append(all_, chunk());
            else if (what == 7)
                append(all_, subfile::cut_record(epoch(), input_.number(), identity));
            else if (what == 8)
                append(all_, subfile::subfile_record(number(), unsigned_number() * 64, identity));
            else
                damage();
        }
        return std::move(all_);
    }

private:
    std::uint32_t number() { return input_.pick(0, 20) == 0 ? 2 : static_cast<std::uint32_t>(input_.pick(0, 1)); }
    std::uint64_t unsigned_number() { return static_cast<std::uint64_t>(input_.number()); }
    std::uint64_t epoch() { return epoch_ += input_.take<std::uint8_t>() % 4 == 3 ? unsigned_number() : 1; }

    Bytes form()
    {
        Bytes entries;
        std::uint64_t position = 0;
        for (auto parts = input_.pick(0, 3); parts >= 0; --parts) {
            pattern::Variables const variables = {std::make_shared<pattern::Variable const>(variable())};
            if (!variables[0]->status()) continue;
            auto const part = subfile::encode_part(variables, position);
            if (!part) continue;
            append(entries, *part);
            position += variables[0]->bytes();
        }
        auto const bytes = input_.take<std::uint8_t>() % 8 == 7 ? unsigned_number() : position;
        return subfile::form_record(number(), number(), bytes, entries, identity);
    }
    pattern::Variable variable()
    {
        if (input_.pick(0, 2) == 0) {  // loops
            Subarray array;
            array.file_offset = input_.number();
            array.element_size = input_.pick(1, 8);
            for (auto dimensions = input_.pick(1, 3); dimensions > 0; --dimensions) {
                array.shape.push_back(input_.pick(1, 60));
                array.start.push_back(input_.pick(0, 3));
                array.count.push_back(input_.pick(1, 20));
                array.stride.push_back(input_.pick(1, 3));
            }
            return pattern::Variable::from_subarray(0, array);
        }
        std::vector<Extent> extents;
        std::int64_t at = input_.pick(0, 200);
        for (auto pieces = input_.pick(1, 5); pieces > 0; --pieces) {
            extents.push_back({at, input_.pick(1, 40)});
            at += input_.pick(0, 60);
        }
        return pattern::Variable::from_extents(0, extents);
    }
    Bytes chunk()
    {
        subfile::ChunkRecord record{{}, number(), number(), epoch(), input_.number(), 0, 1, 0, 0, 0};
        record.position = input_.take<std::uint8_t>() % 4 == 3 ? unsigned_number() : end_;
        if (input_.pick(0, 1) == 1) {
            record.count = unsigned_number();
            record.epoch_step = unsigned_number();
            record.shift_step = input_.number();
            record.position_step = unsigned_number() * 8;
        }
        end_ = std::min<std::uint64_t>(end_, 1 << 20) + 512;
        return subfile::chunk_record(record, identity);
    }
    void damage()
    {
        if (all_.empty()) return;
        auto const at = input_.take<std::uint16_t>() % all_.size();
        all_[at] ^= input_.take<std::byte>();
    }

    fuzz::Input& input_;
    Bytes all_;
    std::uint64_t epoch_ = 0;
    std::uint64_t end_ = 0;
};

/// Adds records up to the first that cannot be read or is refused. Returns whether all were taken.
bool add_all(subfile::ExtentMap& map, std::span<std::byte const> records)
{
    while (!records.empty()) {
        auto const record = subfile::next_record(records, subfile::seed_of(identity));
        if (record.empty()) return false;
        if (auto const status = map.add(record); !status) {
            fuzz::claim_one_line(status.error());
            return false;
        }
        records = records.subspan(record.size());
    }
    return true;
}

bool is_same(subfile::Holding const& a, subfile::Holding const& b)
{
    return a.subfile == b.subfile && a.shift == b.shift && a.position == b.position &&
           a.part->layout.end() == b.part->layout.end();
}

void claim_sound(subfile::ExtentMap const& map)
{
    claim(map.end() >= 0, "the end is an offset");
    for (auto const begin : {std::int64_t{0}, small / 2, map.end() - std::min(map.end(), small)}) {
        auto const found = map.find(begin, begin + small);
        for (auto const& holding : found) {
            auto const& bytes = map.subfiles().at(holding.subfile);
            claim(holding.position >= 0 && static_cast<std::uint64_t>(holding.position) < bytes,
                  "data lies in its subfile");
            claim(holding.part->layout.end() + holding.shift > begin, "it has bytes of the range, or behind it");
            claim(holding.part->layout.base + holding.shift >= 0, "it lies in the file");
        }
    }
}

/// The records of a map say the same, and are no more.
void claim_kept(subfile::ExtentMap const& map)
{
    auto const records = map.records(identity);
    subfile::ExtentMap again;
    claim(add_all(again, records), "its own records are sound");
    claim(again.all_announced() && again.chunks() <= map.chunks() && again.forms() <= map.forms(), "and no more");
    claim(again.records(identity) == records, "and stay the same");
    // Whatever is found first from the end, as long as it covers everything, is the same.
    auto const before = map.find(0, small);
    auto const after = again.find(0, small);
    claim(after.size() <= before.size(), "nothing is new");
    for (std::size_t i = 0, j = 0; j < after.size(); ++i, ++j) {
        while (i < before.size() && !is_same(before[i], after[j])) ++i;
        claim(i < before.size(), "what is kept is in the same order");
    }
}

/// A reader's way, over files with these records.
void read_directory(std::span<std::byte const> records, subfile::ExtentMap const& map)
{
    auto const& scratch = fuzz::scratch();
    subfile::SetHead head = {};
    std::memcpy(head.magic, subfile::index_magic, sizeof head.magic);
    head.version = subfile::format_version;
    head.bytes = sizeof head;
    head.identity = identity;
    head.generation = 1;
    head.content_bytes = records.size();
    head.content_checksum = stage::checksum_of(records.data(), records.size(), subfile::seed_of(identity));
    head.epoch = map.epoch();
    head.subfiles = 3;
    subfile::seal(head);
    Bytes index;
    append(index, std::as_bytes(std::span(&head, 1)));
    append(index, records);
    scratch.write("index", index);
    Bytes data(16384);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 251 + 1);
    for (auto const* const name : {"subfile.0", "subfile.1"}) scratch.write(name, data);
    subfile::SetTarget target(nullptr, scratch.path(), identity, target::OpenMode::update);
    auto const size = target.size();
    if (!size) return fuzz::claim_one_line(size.error());
    claim(*size == static_cast<std::uint64_t>(map.end()), "the size is the end of the chunks");
    std::size_t parts = 0;
    for (auto const& holding : map.find(0, small))
        parts += 1 + static_cast<std::size_t>(holding.part->layout.pieces() > 0);
    if (parts > 4096) return;  // it would take its time
    Bytes whole(small);
    auto const read = target.target::Target::read(0, std::span<std::byte>(whole));
    if (!read) return fuzz::claim_one_line(read.error());
    claim(*read == std::min<std::uint64_t>(*size, small), "it reads up to the end");
    // Stretch by stretch, the same bytes come from where writes would go.
    auto const status = target.each_stretch(
        0, static_cast<std::int64_t>(*read), [&](std::int64_t offset, std::int64_t length, int fd, std::int64_t at) {
            Bytes bytes(static_cast<std::size_t>(length));
            if (fd >= 0) {
                auto status = core::read_all(fd, static_cast<std::uint64_t>(at), bytes, "a stretch");
                if (!status) return status;
            }
            claim(std::equal(bytes.begin(), bytes.end(), whole.begin() + offset), "both ways to read agree");
            return core::Status();
        });
    claim(status.has_value(), "what was read lies somewhere");
}

/// The same records as a job's journal.
void read_journal(std::span<std::byte const> records)
{
    Bytes journal;
    subfile::SetHead head = {};
    std::memcpy(head.magic, subfile::journal_magic, sizeof head.magic);
    head.version = subfile::format_version;
    head.bytes = sizeof head;
    head.identity = identity;
    head.generation = 1;
    subfile::seal(head);
    append(journal, std::as_bytes(std::span(&head, 1)));
    append(journal, records);
    auto const& scratch = fuzz::scratch();
    scratch.write("journal.0", journal);
    auto const opened = subfile::open_directory(scratch.path());
    claim(opened.has_value(), "the directory can be opened");
    subfile::SetContents contents(opened->get(), identity);
    auto const status = contents.refresh();
    if (!status) fuzz::claim_one_line(status.error());
    if (status) claim_sound(contents.map());
}

void put_note()
{
    subfile::WriterNote note = {};
    std::memcpy(note.magic, subfile::note_magic, sizeof note.magic);
    note.identity = identity;
    note.generation = 1;
    note.groups = 1;
    note.checksum = stage::checksum_of(&note, offsetof(subfile::WriterNote, checksum));
    fuzz::scratch().write("writer", std::as_bytes(std::span(&note, 1)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    fuzz::Input input(data, size);
    Bytes records;
    if (size > 0 && data[0] == 'R') {
        auto const all = std::as_bytes(std::span(data, size)).subspan(1);
        records.assign(all.begin(), all.end());
    } else {
        records = Recipe(input).records();
    }
    subfile::ExtentMap map;
    bool const sound = add_all(map, records);
    claim_sound(map);
    claim_kept(map);
    if (sound) read_directory(records, map);
    put_note();
    ::unlink((fuzz::scratch().path() + "/index").c_str());
    read_journal(records);
    return 0;
}
