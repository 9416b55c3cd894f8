// The result of the logs of a node's ranks: whose bytes win, what was handed over, and how much is read for it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stage/log_content.hpp"
#include "stage/marker.hpp"
#include "stage/stage.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::stage;
namespace fs = std::filesystem;

/// Ranks of one node with a staged file of letters.
class Node {
public:
    explicit Node(std::uint32_t ranks, StageMapping mapping = StageMapping::process)
    {
        auto name = (fs::temp_directory_path() / "tapioca-content-test-XXXXXX").string();
        directory_ = ::mkdtemp(name.data());
        target_ = std::move(*target::open_file(path(), target::OpenMode::create));
        Head head = {};
        head.identity = new_identity();
        head.epoch = 1;
        head.ranks = ranks;
        head.mapping = mapping;
        std::strcpy(head.host, "here");
        std::strcpy(head.target, path().c_str());
        std::vector<NodeLogs::Log> logs;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            bool const first = rank == 0 || mapping == StageMapping::process;
            head.rank = rank;
            if (first) logs.push_back({LogPlace{directory_, log_name(mapping, rank)}});
            auto writer = first ? LogWriter::create(logs.back().place, head) : LogWriter::join(logs.back().place, rank);
            EXPECT_TRUE(writer);
            logs.back().users.push_back({rank, overflow(rank)});
            stages_.emplace_back(std::move(*writer), overflow(rank), StageSync::sync);
        }
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            auto seen = logs;
            if (mapping == StageMapping::process) seen[rank].own = true;
            stages_[rank].meet(NodeLogs(seen));
        }
    }
    Node(Node const&) = delete;
    Node& operator=(Node const&) = delete;
    ~Node() { fs::remove_all(directory_); }

    Stage& operator[](std::uint32_t rank) { return stages_[rank]; }
    target::Target& target() { return *target_; }
    [[nodiscard]] std::string path() const { return directory_ + "/target"; }
    [[nodiscard]] LogPlace overflow(std::uint32_t rank) const
    {
        return {directory_, "target.tapioca.rank" + std::to_string(rank)};
    }

    /// A collective call, in which one rank writes.
    void write_all(std::uint32_t rank, std::int64_t at, std::string const& text)
    {
        for (auto& stage : stages_) stage.advance();
        write(rank, at, text, true);
    }
    void write(std::uint32_t rank, std::int64_t at, std::string const& text, bool collective = false)
    {
        Extent const extent{at, static_cast<std::int64_t>(text.size())};
        auto const variable = pattern::Variable::from_extents(0, {&extent, 1});
        auto const* const data = reinterpret_cast<std::byte const*>(text.data());
        EXPECT_TRUE(stages_[rank].write({variable, 0, data, 0, collective}));
    }
    void write_through(std::uint32_t rank, std::int64_t at, std::string const& text)
    {
        Extent const extent{at, static_cast<std::int64_t>(text.size())};
        auto const variable = pattern::Variable::from_extents(0, {&extent, 1});
        auto const* const data = reinterpret_cast<std::byte const*>(text.data());
        EXPECT_TRUE(stages_[rank].write_through({variable, 0, data, 0, false}, [&] {
            write_past(at, text);
            return core::Status();
        }));
    }
    void hand_over(std::uint32_t rank, Stage::PastTheLog next = Stage::PastTheLog::write)
    {
        auto const status = stages_[rank].hand_over(*target_, next, false);
        EXPECT_TRUE(status) << status.error().text;
    }
    /// What goes past the log.
    void write_past(std::int64_t at, std::string const& text)
    {
        EXPECT_TRUE(target_->write(at, std::as_bytes(std::span(text))));
    }
    /// What the logs have. `again`: as a recovery looks at it.
    std::unique_ptr<LogContent> content(bool again = false)
    {
        auto all = std::make_unique<LogContent>();
        std::vector<std::string> done;
        for (auto const& stage : stages_)
            if (std::find(done.begin(), done.end(), stage.writer().place().meta()) == done.end()) {
                done.push_back(stage.writer().place().meta());
                EXPECT_TRUE(all->add(stage.writer().place()));
            }
        for (std::uint32_t rank = 0; rank < stages_.size(); ++rank)
            if (is_ours(overflow(rank).meta())) {
                EXPECT_TRUE(all->add(overflow(rank)));
            }
        if (again) all->rewrite_stored();
        return all;
    }
    /// The file after a flush.
    std::string flushed(LogContent& content)
    {
        auto const batch = content.batch(0, UINT64_MAX - 1);
        auto text = file();
        for (auto const& layout : batch.variables[0]->layouts()) {
            pattern::LayoutCursor cursor(layout);
            for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
                for (std::int64_t i = 0; i < run.count; ++i) {
                    auto const at = static_cast<std::size_t>(run.offset + i * run.stride);
                    if (text.size() < at + static_cast<std::size_t>(run.length))
                        text.resize(at + static_cast<std::size_t>(run.length), '.');
                    std::memcpy(text.data() + at, batch.data + run.buffer + i * run.buffer_stride,
                                static_cast<std::size_t>(run.length));
                }
        }
        return text;
    }
    std::string flushed(bool again = false) { return flushed(*content(again)); }
    std::string file()
    {
        std::string text(target_->size().value_or(0), '.');
        EXPECT_TRUE(target_->read(0, std::as_writable_bytes(std::span(text))));
        return text;
    }
    /// What an independent read of a rank finds.
    std::string seen(std::uint32_t rank, std::int64_t begin, std::int64_t end)
    {
        auto text = file();
        auto const surface = stages_[rank].surface(begin, end);
        EXPECT_TRUE(surface);
        text.resize(std::max(text.size(), static_cast<std::size_t>(end)), '.');
        (void)(*surface)->look(begin, end, [&](std::int64_t at, std::int64_t length, std::byte const* data) {
            std::memcpy(text.data() + at, data, static_cast<std::size_t>(length));
        });
        return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    }
    /// Turns a bit of a log over.
    static void damage(LogPlace const& place, bool meta, std::uint64_t at)
    {
        auto const file = open_private(meta ? place.meta() : place.data(), true);
        ASSERT_TRUE(file);
        std::byte byte{};
        ASSERT_TRUE(read_all(file->get(), at, {&byte, 1}));
        byte ^= std::byte{1};
        ASSERT_TRUE(stage::write_all(file->get(), at, {&byte, 1}));
    }

private:
    std::string directory_;
    std::unique_ptr<target::Target> target_;
    std::vector<Stage> stages_;
};

constexpr StageMapping mappings[] = {StageMapping::process, StageMapping::node};

TEST(StageContent, OfOneEpochTheHighestRanksBytesWin)
{
    for (auto const mapping : mappings) {
        Node node(3, mapping);
        for (auto const rank : {1U, 2U, 0U}) node.write(rank, rank, std::string(4, static_cast<char>('0' + rank)));
        node.write(0, 0, "abcd");
        EXPECT_EQ(node.flushed(), "a12222") << "the order of the calls does not matter";
        node.write_all(0, 3, "ABC");
        EXPECT_EQ(node.flushed(), "a12ABC") << "but a later epoch does";
        // Whoever hands over leaves to the others what is theirs.
        node.hand_over(0);
        EXPECT_EQ(node.file().substr(0, 1), "a");
        node.hand_over(1);
        node.hand_over(2);
        EXPECT_EQ(node.file(), "a12ABC");
    }
}

TEST(StageContent, WhatWasHandedOverKeepsItsPlaceAmongOtherRanksBytes)
{
    for (auto const mapping : mappings)
        for (bool const again : {false, true}) {
            Node node(2, mapping);
            node.write_all(1, 0, "1111");
            node.write_all(0, 1, "00");
            node.write_all(1, 2, "x");
            node.hand_over(0);
            EXPECT_EQ(node.seen(1, 0, 4), "10x1") << "an independent read";
            EXPECT_EQ(node.flushed(again), "10x1");
            // Newer bytes that went past the log stay, too, and what is written later comes over them.
            node.write_past(1, "!");
            EXPECT_EQ(node.flushed(again), "1!x1");
            EXPECT_EQ(node.content(again)->requests(), 2U) << "the first rank's is void";
            node.write_all(0, 0, "yy");
            EXPECT_EQ(node.flushed(again), "yyx1");
        }
}

TEST(StageContent, WhatWasHandedOverBesideTheTargetVoidsTheLogBeforeIt)
{
    Node node(2);
    node.write_all(1, 0, "1111");
    node.write_all(0, 0, "00");
    node[0].writer().limit(0);
    node.write_all(0, 2, std::string(2 * data_block_bytes, 'z'));
    ASSERT_TRUE(is_ours(node.overflow(0).meta())) << "the log has gone on there";
    node.hand_over(0);
    node.write_past(0, "!");
    EXPECT_EQ(node.flushed(true).substr(0, 4), "!0zz");
}

/// Where the first entry of a rank with a log of its own is.
constexpr auto first_entry = head_bytes + sizeof(LogBlock);

TEST(StageContent, DamageBeforeAVoidEntryBringsNothingBack)
{
    struct Case {
        char const* what;
        bool meta;
        std::uint64_t at;
        bool told;
    };
    for (auto const& [what, meta, at, told] :
         {Case{"data of the first request", false, head_bytes, false},
          Case{"the second entry", true, first_entry + sizeof(LogEntry) + 20, true},
          Case{"the size of the second entry", true, first_entry + sizeof(LogEntry), true},
          Case{"the block's head", true, head_bytes + 8, true}}) {
        Node node(2);
        node.write_all(1, 0, "1111");
        for (int i = 0; i < 3; ++i) node.write_all(0, i, "00");
        node.hand_over(0);
        node.write_past(0, "!!!!");
        node.damage(node[0].writer().place(), meta, at);
        auto const content = node.content(true);
        EXPECT_EQ(!content->damage().empty() || !content->verify().empty(), told) << what;
        EXPECT_EQ(node.flushed(*content).find('0'), std::string::npos) << what;
    }
}

TEST(StageContent, DamageBehindAVoidEntryEndsTheRequests)
{
    Node node(1);
    node.write_all(0, 0, "0000");
    node.hand_over(0);
    node.write_past(0, "!!!!");
    node.write_all(0, 1, "a");
    node.write_all(0, 2, "b");
    node.damage(node[0].writer().place(), true, first_entry + 3 * sizeof(LogEntry) + 20);
    auto const content = node.content(true);
    EXPECT_FALSE(content->damage().empty());
    EXPECT_EQ(node.flushed(*content), "!a!!");
}

TEST(StageContent, OneThatOthersAppendToIsNotDamaged)
{
    Node node(3, StageMapping::node);
    std::atomic<bool> done = false;
    std::thread reader([&] {
        while (!done) {
            auto const content = node.content();
            if (content->damage().empty()) continue;
            ADD_FAILURE() << content->damage().front();
            return;
        }
    });
    std::vector<std::thread> writers;
    for (std::uint32_t rank = 1; rank < 3; ++rank)
        writers.emplace_back([&node, rank] {
            for (int i = 0; i < 20'000; ++i) node.write(rank, i * 100, std::string(100, 'x'));
        });
    for (auto& writer : writers) writer.join();
    done = true;
    reader.join();
}

TEST(StageContent, HandingOverLooksOnlyAtWhatIsNew)
{
    for (auto const mapping : mappings) {
        Node node(3, mapping);
        constexpr int calls = 200;
        for (int i = 0; i < calls; ++i) {
            for (std::uint32_t rank = 0; rank < 3; ++rank) node[rank].advance();
            for (std::uint32_t rank = 0; rank < 3; ++rank) node.write(rank, 3 * i + rank, "x", true);
            node.hand_over(0);
        }
        EXPECT_LE(node[0].totals.looked_at, calls * 10U) << "entries: a few for each call, not all before it";
        EXPECT_EQ(node.flushed(), std::string(3 * calls, 'x'));
    }
}

TEST(StageContent, ReadsBetweenWritesLookOnlyAtWhatIsNew)
{
    for (auto const mapping : mappings) {
        Node node(2, mapping);
        node.write_all(1, 0, "from another rank");
        constexpr int calls = 1000;
        for (int i = 0; i < calls; ++i) {
            node.write(0, 7 * i, std::string(10, static_cast<char>('a' + i % 26)));
            EXPECT_EQ(node.seen(0, 7 * i, 7 * i + 10), std::string(10, static_cast<char>('a' + i % 26)));
        }
        EXPECT_LE(node[0].totals.looked_at, calls * 60U) << "entries: not all before it at each call";
    }
}

TEST(StageContent, SoTheyDoWhereAllRanksWrite)
{
    for (auto const mapping : mappings) {
        Node node(3, mapping);
        constexpr int calls = 1000;
        for (int i = 0; i < calls; ++i) {
            for (std::uint32_t rank = 0; rank < 3; ++rank)
                node.write(rank, 30 * i + 10 * rank, std::string(10, static_cast<char>('a' + i % 26)));
            EXPECT_EQ(node.seen(0, 30 * i, 30 * i + 30), std::string(30, static_cast<char>('a' + i % 26)));
        }
        EXPECT_LE(node[0].totals.looked_at, 3 * calls * 30U) << "entries: not all before them at each call";
    }
}

TEST(StageContent, WhatIsKeptForReadsIsWhatTheLogsHave)
{
    std::mt19937 random(5);
    auto const draw = [&](unsigned below) { return static_cast<std::uint32_t>(random() % below); };
    for (int round = 0; round < 6; ++round) {
        Node node(3, mappings[round % 2]);
        for (int i = 0; i < 150; ++i) {
            auto const rank = draw(3);
            auto const at = draw(60);
            std::string const text(1 + draw(20), static_cast<char>('a' + draw(26)));
            auto const what = draw(10);
            if (what == 0) node[rank].advance();
            if (what == 1) node.hand_over(rank);
            if (what == 2) node.write_through(rank, at, text);
            if (what == 3) node.write_all(rank, at, text);
            if (what > 3 && what < 7) node.write(rank, at, text);
            auto const reader = draw(2);
            auto const begin = draw(80);
            auto const end = begin + 1 + draw(20);
            auto wanted = node.flushed();
            wanted.resize(std::max<std::size_t>(wanted.size(), end), '.');
            auto const& range = node[reader].range();
            if (begin >= range.end || end <= range.begin) continue;
            EXPECT_EQ(node.seen(reader, begin, end), wanted.substr(begin, end - begin)) << round << " " << i;
        }
    }
}

}  // namespace
