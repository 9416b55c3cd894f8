// A small log, cut off at every byte and with every bit flipped: either this is noticed, or it makes no difference.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tapioca/stage.hpp>

#include "stage/log_content.hpp"
#include "stage/log_writer.hpp"
#include "stage/marker.hpp"
#include "stage/snapshot.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::stage;
using Bytes = std::vector<std::byte>;
namespace fs = std::filesystem;

class Scratch {
public:
    Scratch()
    {
        auto name = (fs::exists("/dev/shm") ? std::string("/dev/shm") : fs::temp_directory_path().string()) +
                    "/tapioca-log-test-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    Scratch(Scratch const&) = delete;
    Scratch& operator=(Scratch const&) = delete;
    ~Scratch() { fs::remove_all(path_); }
    [[nodiscard]] std::string const& path() const { return path_; }

private:
    std::string path_;
};

Head head_of(StageMapping mapping, std::uint32_t ranks)
{
    Head head = {};
    head.identity = new_identity();
    head.epoch = 1;
    head.ranks = ranks;
    head.mapping = mapping;
    std::strcpy(head.host, "here");
    std::strcpy(head.target, "/nowhere/target");
    return head;
}

Bytes data_of(std::uint64_t bytes, std::uint32_t salt)
{
    std::mt19937 engine(salt);
    Bytes data(bytes);
    for (auto& byte : data) byte = static_cast<std::byte>(engine());
    return data;
}

/// All kinds of requests, overlapping ones among them.
void fill(LogWriter& writer, std::uint64_t first_epoch = 1)
{
    auto const rank = writer.rank();
    std::uint32_t number = 0;
    auto const append = [&](pattern::Variable const& variable, bool stored = false) {
        auto const data = data_of(variable.bytes(), rank * 100 + number);
        auto const epoch = first_epoch + number / 2;
        auto const status = stored ? writer.append_stored(variable, 0, data.data(), epoch, number)
                                   : writer.append(variable, 0, data.data(), epoch, number);
        ASSERT_TRUE(status) << status.error().text;
        ++number;
    };
    auto const base = static_cast<std::int64_t>(rank) * 1000;
    Extent const one[] = {{base, 200}};
    Extent const list[] = {{base + 100, 7}, {base + 150, 9}, {base + 300, 11}};
    append(pattern::Variable::from_extents(0, one));
    append(pattern::Variable::from_subarray(0, Subarray{{8, 8}, {1, 1}, {3, 3}, {2, 2}, 4, base + 400}));
    append(pattern::Variable::from_extents(0, list));
    append(pattern::Variable::from_extents(0, std::span(one)), true);
    append(pattern::Variable::from_extents(0, std::span(list)), true);
    Extent const last[] = {{base + 50, 40}};
    append(pattern::Variable::from_extents(0, last));
}

/// A request with its data, as text, by rank and number.
using Requests = std::map<std::pair<std::uint32_t, std::uint64_t>, std::string>;

std::string to_text(StageReader const& reader, StagedRequest const& request)
{
    std::string text = std::to_string(static_cast<int>(request.kind)) + " " + std::to_string(request.epoch) + " " +
                       std::to_string(request.variable) + " " + std::to_string(request.bytes);
    for (auto const& piece : reader.pieces(request))
        text += " " + std::to_string(piece.offset) + "+" + std::to_string(piece.length) + "@" +
                std::to_string(piece.position);
    auto const data = reader.data(request);
    return text + std::string(reinterpret_cast<char const*>(data.data()), data.size());
}

/// What the reader tells. `damaged` if it throws.
Requests read_requests(std::string const& meta, bool& damaged)
{
    Requests requests;
    try {
        StageReader reader(meta);
        while (true) try {
                auto const request = reader.next();
                if (!request) break;
                requests[{request->rank, request->number}] = to_text(reader, *request);
            } catch (Error const&) {
                damaged = true;
            }
    } catch (Error const&) {
        damaged = true;
    }
    return requests;
}

/// What a recovery would write, and whether it would be told that something is wrong.
struct Recovered {
    bool damaged = false;
    std::uint64_t requests = 0;
    std::vector<int> file = std::vector<int>(4000, -1);
    bool operator==(Recovered const&) const = default;
};

Recovered recover(LogPlace const& place)
{
    Recovered result;
    LogContent content;
    if (!content.add(place)) {
        result.damaged = true;
        return result;
    }
    result.damaged = !content.damage().empty() || !content.verify().empty();
    result.requests = content.requests();
    auto const batch = content.batch(0, UINT64_MAX - 1);
    for (auto const& layout : batch.variables[0]->layouts()) {
        pattern::LayoutCursor cursor(layout);
        for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
            for (std::int64_t i = 0; i < run.count; ++i)
                for (std::int64_t b = 0; b < run.length; ++b)
                    result.file.at(static_cast<std::size_t>(run.offset + i * run.stride + b)) =
                        static_cast<int>(batch.data[run.buffer + i * run.buffer_stride + b]);
    }
    return result;
}

/// A log, its original content, and how many times it was looked at in another state.
class Patient {
public:
    Patient(StageMapping mapping, std::uint32_t ranks) : place_{scratch_.path(), log_name(mapping, 0)}
    {
        auto head = head_of(mapping, std::max(ranks, 3U));
        auto first = LogWriter::create(place_, head);
        EXPECT_TRUE(first);
        fill(*first);
        for (std::uint32_t rank = 1; rank < ranks; ++rank) {
            auto writer = LogWriter::join(place_, rank);
            EXPECT_TRUE(writer);
            fill(*writer);
        }
        bool damaged = false;
        requests_ = read_requests(place_.meta(), damaged);
        recovered_ = recover(place_);
        EXPECT_FALSE(damaged || recovered_.damaged);
        EXPECT_EQ(requests_.size(), ranks * 6);
    }

    [[nodiscard]] LogPlace const& place() const { return place_; }
    [[nodiscard]] std::uint64_t cases() const { return cases_; }
    [[nodiscard]] std::uint64_t noticed() const { return noticed_; }

    /// Either damage is told, or all is as it was. The reader is asked now and then: it never tells anything wrong.
    void examine(std::string const& what)
    {
        ++cases_;
        auto const now = recover(place_);
        if (now.damaged) ++noticed_;
        EXPECT_TRUE(now.damaged || now == recovered_) << what;
        if (cases_ % 101 != 0) return;
        bool damaged = false;
        auto const requests = read_requests(place_.meta(), damaged);
        EXPECT_TRUE(damaged || requests == requests_) << what;
        for (auto const& [key, text] : requests) {
            auto const original = requests_.find(key);
            EXPECT_TRUE(original != requests_.end() && original->second == text)
                << what << ": rank " << key.first << ", request " << key.second;
        }
    }

    /// Every bit of [begin, end) of a file, one at a time.
    void flip(std::string const& path, std::uint64_t begin, std::uint64_t end, std::uint64_t step = 1)
    {
        int const fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        for (auto at = begin; at < end; at += step) {
            unsigned char byte = 0;
            ASSERT_EQ(::pread(fd, &byte, 1, static_cast<off_t>(at)), 1);
            for (int bit = 0; bit < 8; ++bit) {
                auto const flipped = static_cast<unsigned char>(byte ^ (1U << bit));
                ASSERT_EQ(::pwrite(fd, &flipped, 1, static_cast<off_t>(at)), 1);
                examine(path + ": bit " + std::to_string(bit) + " of byte " + std::to_string(at));
            }
            ASSERT_EQ(::pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
        }
        ::close(fd);
    }

    /// Every length from `end` - 1 down to `begin`.
    void truncate(std::string const& path, std::uint64_t begin, std::uint64_t end, std::uint64_t step = 1)
    {
        for (auto length = end; length > begin;) {
            length = length >= begin + step ? length - step : begin;
            ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(length)), 0);
            examine(path + ": " + std::to_string(length) + " bytes");
        }
    }

    void tell(char const* what) const
    {
        std::printf("%s: %llu cases, %llu noticed, the others in dead space\n", what,
                    static_cast<unsigned long long>(cases_), static_cast<unsigned long long>(noticed_));
    }

private:
    Scratch scratch_;
    LogPlace place_;
    Requests requests_;
    Recovered recovered_;
    std::uint64_t cases_ = 0;
    std::uint64_t noticed_ = 0;
};

/// Behind the last byte of a block that was written, and of the data.
std::uint64_t used_end(std::string const& path, std::uint64_t begin, std::uint64_t limit)
{
    std::ifstream file(path, std::ios::binary);
    std::string bytes(limit - begin, '\0');
    file.seekg(static_cast<std::streamoff>(begin));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return begin + bytes.find_last_not_of('\0') + 1;
}

constexpr std::uint64_t dead_step = 4099;

TEST(StageLog, EveryBitOfTheEntriesOfAProcess)
{
    Patient patient(StageMapping::process, 1);
    auto const meta = patient.place().meta();
    auto const end = used_end(meta, head_bytes, fs::file_size(meta));
    patient.flip(meta, 0, head_bytes);
    patient.flip(meta, head_bytes, end + 64);
    patient.flip(meta, end + 64, fs::file_size(meta), dead_step);
    patient.tell("bits of the entries, one rank");
    EXPECT_GT(patient.noticed(), (end - 300) * 8);
}

TEST(StageLog, EveryBitOfTheEntriesOfANode)
{
    Patient patient(StageMapping::node, 3);
    auto const meta = patient.place().meta();
    patient.flip(meta, 0, head_bytes, 5);
    for (std::uint64_t block = head_bytes; block < fs::file_size(meta); block += meta_block_bytes) {
        auto const end = used_end(meta, block, block + meta_block_bytes);
        patient.flip(meta, block, end + 16);
        patient.flip(meta, end + 16, block + meta_block_bytes, dead_step);
    }
    patient.tell("bits of the entries, three ranks");
}

TEST(StageLog, EveryBitOfTheData)
{
    Patient patient(StageMapping::process, 1);
    auto const data = patient.place().data();
    auto const end = used_end(data, head_bytes, fs::file_size(data));
    patient.flip(data, 0, end);
    patient.flip(data, end, fs::file_size(data), 20 * dead_step);
    patient.tell("bits of the data");
}

TEST(StageLog, EveryBitOfTheDataOfANode)
{
    Patient patient(StageMapping::node, 3);
    auto const data = patient.place().data();
    for (std::uint64_t block = head_bytes; block < fs::file_size(data); block += data_block_bytes)
        patient.flip(data, block, used_end(data, block, std::min(block + data_block_bytes, fs::file_size(data))));
    patient.tell("bits of the data, three ranks");
}

TEST(StageLog, EveryLengthOfTheEntries)
{
    Patient patient(StageMapping::process, 1);
    auto const meta = patient.place().meta();
    auto const end = used_end(meta, head_bytes, fs::file_size(meta));
    patient.truncate(meta, end, fs::file_size(meta), 7);
    patient.truncate(meta, 0, end);
    patient.tell("lengths of the entries, one rank");
    EXPECT_EQ(patient.noticed(), patient.cases());
}

TEST(StageLog, EveryLengthOfTheEntriesOfANode)
{
    Patient patient(StageMapping::node, 3);
    auto const meta = patient.place().meta();
    auto end = static_cast<std::uint64_t>(fs::file_size(meta));
    for (auto block = end - meta_block_bytes; end > head_bytes; end = block, block -= meta_block_bytes) {
        auto const used = used_end(meta, block, end);
        patient.truncate(meta, used, end, 499);
        patient.truncate(meta, block, used);
    }
    patient.tell("lengths of the entries, three ranks");
    EXPECT_EQ(patient.noticed(), patient.cases());
}

TEST(StageLog, EveryLengthOfTheData)
{
    for (auto const mapping : {StageMapping::process, StageMapping::node}) {
        Patient patient(mapping, mapping == StageMapping::node ? 3 : 1);
        auto const data = patient.place().data();
        auto const size = static_cast<std::uint64_t>(fs::file_size(data));
        auto const end = used_end(data, head_bytes, size);
        patient.truncate(data, end, size, dead_step);
        EXPECT_EQ(patient.noticed(), 0U) << "what is cut off behind the data is not missed";
        patient.truncate(data, mapping == StageMapping::node ? end - 1500 : 0, end);
        patient.tell("lengths of the data");
    }
}

TEST(StageLog, IsPrivate)
{
    Scratch const scratch;
    LogPlace const place{scratch.path(), "rank0"};
    auto writer = LogWriter::create(place, head_of(StageMapping::process, 1));
    ASSERT_TRUE(writer);
    for (auto const& path : {place.meta(), place.data()}) {
        struct stat found = {};
        ASSERT_EQ(::stat(path.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 0777, 0600U);
    }
    EXPECT_FALSE(LogWriter::create(place, head_of(StageMapping::process, 1))) << "what is there is not taken over";
    ASSERT_EQ(::chmod(place.meta().c_str(), 0660), 0);
    EXPECT_FALSE(LogContent().add(place));
    EXPECT_THROW(StageReader reader(place.meta()), Error);
}

TEST(StageLog, OneThatWasBeingEmptiedIsEmpty)
{
    Scratch const scratch;
    LogPlace const place{scratch.path(), "rank0"};
    auto writer = LogWriter::create(place, head_of(StageMapping::process, 1));
    ASSERT_TRUE(writer);
    fill(*writer);
    auto const save = scratch.path() + "/head";
    fs::copy_file(place.data(), save);
    ASSERT_TRUE(writer->reset(20, true));
    // the head of the data as it was before
    int const fd = ::open(place.data().c_str(), O_WRONLY | O_CLOEXEC);
    int const old = ::open(save.c_str(), O_RDONLY | O_CLOEXEC);
    Bytes head(head_bytes);
    ASSERT_TRUE(read_all(old, 0, head));
    ASSERT_TRUE(write_all(fd, 0, head));
    ::close(fd);
    ::close(old);
    LogContent content;
    EXPECT_TRUE(content.add(place));
    EXPECT_TRUE(content.damage().empty());
    EXPECT_EQ(content.requests(), 0U);
}

TEST(StageLog, ABlockOfZerosIsDamage)
{
    Scratch const scratch;
    for (auto const mapping : {StageMapping::process, StageMapping::node}) {
        LogPlace const place{scratch.path(), mapping == StageMapping::process ? "rank0" : "node0"};
        auto writer = LogWriter::create(place, head_of(mapping, 1));
        ASSERT_TRUE(writer);
        fill(*writer);
        int const fd = ::open(place.meta().c_str(), O_RDWR | O_CLOEXEC);
        Bytes const zeros(meta_block_bytes);
        for (auto const from : {std::uint64_t{0}, std::uint64_t{200}}) {  // the tail of its entries, then all of it
            ASSERT_TRUE(write_all(fd, head_bytes + 200 - from, std::span(zeros).first(meta_block_bytes - 200 + from)));
            LogContent content;
            EXPECT_TRUE(content.add(place));
            auto const wrong = content.verify();
            EXPECT_FALSE(wrong.empty() && content.damage().empty()) << from;
        }
        ::close(fd);
    }
}

TEST(StageLog, BlocksThatSomebodyCraftedEndTheSearch)
{
    Scratch const scratch;
    LogPlace const place{scratch.path(), "rank0"};
    auto writer = LogWriter::create(place, head_of(StageMapping::process, 1));
    ASSERT_TRUE(writer);
    fill(*writer);
    auto const seed = seed_of(writer->head());
    int const fd = ::open(place.meta().c_str(), O_RDWR | O_CLOEXEC);
    auto const second = head_bytes + meta_block_bytes;  // from where a size that wraps around leads back to the first
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(second + meta_block_bytes)), 0);
    for (auto const bytes : {UINT64_MAX - meta_block_bytes + 1, std::uint64_t{1} << 63, std::uint64_t{1} << 61}) {
        LogBlock block{block_magic, 0, bytes, 1, 6, 0};
        seal(block, seed);
        ASSERT_TRUE(write_all(fd, second, std::as_bytes(std::span(&block, 1))));
        LogContent content;
        EXPECT_TRUE(content.add(place));
        EXPECT_FALSE(content.damage().empty());
    }
    ::close(fd);
}

TEST(StageReader, FollowsALogThatIsWritten)
{
    Scratch const scratch;
    LogPlace const place{scratch.path(), "node0"};
    auto writer = LogWriter::create(place, head_of(StageMapping::node, 2));
    ASSERT_TRUE(writer);
    StageReader reader(place.meta());
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.finished());
    EXPECT_EQ(reader.target(), "/nowhere/target");
    EXPECT_EQ(reader.ranks(), 2U);

    auto other = LogWriter::join(place, 1);
    ASSERT_TRUE(other);
    fill(*other);
    auto const first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->rank, 1U);
    EXPECT_EQ(first->number, 0U);
    EXPECT_EQ(first->kind, StagedKind::contiguous);
    EXPECT_EQ(reader.data(*first), data_of(200, 100));
    auto const array = reader.next();
    ASSERT_TRUE(array);
    EXPECT_EQ(array->kind, StagedKind::subarray);
    EXPECT_EQ(array->array.shape, (std::vector<std::int64_t>{8, 8}));
    EXPECT_EQ(array->array.stride, (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(array->array.file_offset, 1400);
    EXPECT_EQ(reader.pieces(*array).size(), 9U);
    for (int i = 2; i < 6; ++i) {
        auto const request = reader.next();
        ASSERT_TRUE(request);
        EXPECT_EQ(request->in_target, i == 3 || i == 4);
    }
    EXPECT_FALSE(reader.next());

    // a flush, and what comes after it
    ASSERT_TRUE(writer->reset(20, true));
    ASSERT_TRUE(other->reset(20, false));
    EXPECT_FALSE(reader.next());
    try {
        (void)reader.data(*first);
        ADD_FAILURE() << "data of a request that was flushed";
    } catch (Error const& error) {
        EXPECT_EQ(error.code(), Errc::invalid_state);
    }
    fill(*writer, 20);
    int requests = 0;
    while (auto const request = reader.next()) {
        EXPECT_EQ(request->rank, 0U);
        EXPECT_EQ(request->generation, 1U);
        EXPECT_EQ(reader.data(*request).size(), request->bytes);
        ++requests;
    }
    EXPECT_EQ(requests, 6);

    // the end of the job
    writer = core::fail(Errc::io, "closed");
    other = core::fail(Errc::io, "closed");
    ASSERT_TRUE(remove_log(place));
    EXPECT_TRUE(reader.finished());
    EXPECT_FALSE(reader.next());
}

TEST(StageReader, SaysWhatIsNotThere)
{
    Scratch const scratch;
    EXPECT_THROW(StageReader reader(scratch.path()), Error);
    EXPECT_THROW(StageReader reader(scratch.path() + "/none"), Error);
    EXPECT_THROW(StageReader reader(scratch.path() + "/none.meta"), Error);
    std::ofstream(scratch.path() + "/rank0.meta") << "no log";
    std::ofstream(scratch.path() + "/rank0.data") << "no log";
    EXPECT_THROW(StageReader reader(scratch.path()), Error);
}

std::string marker_text(std::string const& ranks, std::string const& directory)
{
    std::string const slot = std::string(20, '0') + " " + std::string(16, '0') + "\n";
    return "tapioca stage 1\n" + slot + slot + R"({"identity":")" + std::string(32, '0') + R"(","ranks":)" + ranks +
           R"(,"mapping":"process","tier":"dram","target":"/t","nodes":[{"host":"a","directory":")" + directory +
           R"(","ranks":[0]}]})";
}

TEST(StageReader, SaysWhichHostsHaveTheLogs)
{
    Scratch const scratch;
    std::ofstream(scratch.path() + "/t") << "data";
    std::ofstream(scratch.path() + "/t.tapioca") << marker_text("1", "/none/tapioca-" + std::string(32, '0'));
    fs::permissions(scratch.path() + "/t.tapioca", fs::perms::owner_read | fs::perms::owner_write);
    try {
        StageReader reader(scratch.path() + "/t");
        FAIL() << "there is no log";
    } catch (Error const& error) {
        EXPECT_EQ(error.code(), Errc::not_found);
        EXPECT_NE(std::string(error.what()).find("is on this host"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("they are on a: "), std::string::npos) << error.what();
    }
}

TEST(Marker, RanksAreWholeNumbersAndRefusalsAreOneLine)
{
    Scratch const scratch;
    auto const target = scratch.path() + "/t";
    auto const refusal = [&](std::string const& text) {
        (void)::unlink((target + ".tapioca").c_str());
        std::ofstream(target + ".tapioca") << text;
        (void)::chmod((target + ".tapioca").c_str(), 0600);
        auto const marker = read_marker(target);
        return marker ? std::string() : marker.error().text;
    };
    auto const directory = "/tmp/tapioca-" + std::string(32, '0');
    EXPECT_EQ(refusal(marker_text("1", directory)), "");
    for (auto const* const ranks : {"1.5", "-1", "4294967297", "1e300", "true"})
        EXPECT_NE(refusal(marker_text(ranks, directory)), "") << ranks;
    auto const text = refusal(marker_text("1", "/a\\nb"));
    EXPECT_NE(text.find("/a?b: no directory of this job's logs"), std::string::npos) << text;
}

TEST(Marker, NamesThatAreNoUtf8AreAFailure)
{
    Scratch const scratch;
    Marker marker;
    marker.ranks = 1;
    marker.tier = "dram";
    marker.target = scratch.path() + "/t\xe4rget";
    marker.nodes = {{"host", "/tmp/tapioca-" + std::string(32, '0'), {0}}};
    marker.noted = {0, 1, Noted::State::left, {}};
    ASSERT_TRUE(create_marker(marker, false)) << "the target's name is found by its path";
    EXPECT_TRUE(read_marker(marker.target));
    ASSERT_TRUE(remove_marker(marker.target));
    marker.nodes[0].directory = "/d\xefr/tapioca-" + std::string(32, '0');
    auto const made = create_marker(marker, false);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Errc::unsupported);
    EXPECT_TRUE(fs::is_empty(scratch.path()));
}

}  // namespace
