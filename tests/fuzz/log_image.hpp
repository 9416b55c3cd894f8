// A log made from a fuzzer's input: the structure comes from the input, but the checksums match, so that the code
// behind them is reached.
#pragma once

#include <vector>

#include "fuzz/fuzz.hpp"
#include "stage/log_format.hpp"

namespace tapioca::fuzz {

/// NAME.meta and NAME.data.
struct LogImage {
    std::vector<std::byte> meta;
    std::vector<std::byte> data;
};

class LogBuilder {
public:
    explicit LogBuilder(Input& input) : input_(input) {}

    /// A head, blocks with entries, and at the end some bytes changed or cut off.
    LogImage build()
    {
        begin();
        for (int turns = 0; turns < 64 && !input_.empty(); ++turns) {
            auto const what = input_.pick(0, 7);
            if (what == 0)
                begin_block();
            else if (what <= 2)
                contiguous();
            else if (what <= 4)
                subarray();
            else if (what <= 6)
                layout();
            else
                anything();
        }
        flush();
        counters_.meta_end = image_.meta.size() + static_cast<std::uint64_t>(meta_end_);
        std::memcpy(image_.meta.data() + sizeof(stage::Head), &counters_, sizeof counters_);
        for (auto left = damage_; left > 0; --left) damage();
        return std::move(image_);
    }

private:
    void begin()
    {
        auto const flags = input_.take<std::uint8_t>();
        damage_ = flags & 3;
        stage::Head head = {};
        std::memcpy(head.magic, stage::meta_magic, sizeof head.magic);
        head.version = stage::format_version;
        head.bytes = stage::head_bytes;
        head.generation = flags >> 2 & 3;
        head.epoch = 1;
        head.ranks = 1 + (flags >> 4 & 7);
        head.mapping = static_cast<StageMapping>(flags >> 7);
        head.meta_block = stage::meta_block_bytes;
        head.data_block = stage::data_block_bytes;
        std::strcpy(head.host, "here");
        std::strcpy(head.target, "/nowhere/target");
        stage::seal(head);
        seed_ = stage::seed_of(head);
        ranks_ = head.ranks;
        image_.meta.resize(stage::head_bytes);
        std::memcpy(image_.meta.data(), &head, sizeof head);
        counters_.emptied = head.generation;
        counters_.emptied_inverted = ~head.generation;
        image_.data = some_data();
        std::memcpy(head.magic, stage::data_magic, sizeof head.magic);
        stage::seal(head);
        std::memcpy(image_.data.data(), &head, sizeof head);
        if (input_.pick(0, 15) == 1) counters_.emptied = static_cast<std::uint64_t>(input_.number());
        if (input_.pick(0, 15) == 1) meta_end_ = input_.take<std::int16_t>();
        begin_block();
    }

    void begin_block()
    {
        flush();
        auto const which = input_.take<std::uint8_t>();
        rank_ = which & 7;
        if (!(which & 0x80)) rank_ %= ranks_;
        stage::LogBlock block = {};
        block.magic = stage::block_magic;
        block.rank = rank_;
        block.bytes = stage::meta_block_bytes;
        block.number = which & 0x40 ? static_cast<std::uint64_t>(input_.number()) : blocks_[rank_]++;
        block.first_entry = which & 0x20 ? static_cast<std::uint64_t>(input_.number()) : entries_[rank_];
        if (which & 0x10) block.bytes = static_cast<std::uint64_t>(input_.number());
        stage::seal(block, seed_);
        block_.assign(sizeof block, std::byte{});
        std::memcpy(block_.data(), &block, sizeof block);
    }

    void flush()
    {
        if (block_.empty()) return;
        block_.resize(stage::meta_block_bytes);
        image_.meta.insert(image_.meta.end(), block_.begin(), block_.end());
        block_.clear();
    }

    stage::LogEntry entry(stage::EntryKind kind, std::uint64_t bytes)
    {
        stage::LogEntry entry = {};
        entry.kind = kind;
        auto const how = input_.take<std::uint8_t>();
        entry.flags = how & 3;
        epoch_[rank_] += how >> 2 & 1;
        entry.epoch = how & 0x80 ? static_cast<std::uint64_t>(input_.number()) : epoch_[rank_];
        entry.variable = how & 0x40 ? 7 : 0;
        entry.data_bytes = how & 0x20 ? static_cast<std::uint64_t>(input_.number()) : bytes;
        entry.position = how & 0x10 ? static_cast<std::uint64_t>(input_.number()) : stage::head_bytes + next_data_;
        next_data_ = (next_data_ + bytes) % (data_bytes / 2);
        entry.offset = input_.number();
        std::uint64_t end = 0;
        if (!__builtin_add_overflow(entry.position, entry.data_bytes, &end) && end <= image_.data.size())
            entry.data_checksum = stage::checksum_of(image_.data.data() + entry.position, entry.data_bytes);
        if (how & 8) entry.data_checksum += static_cast<std::uint64_t>(input_.number());
        return entry;
    }

    void contiguous() { put(entry(stage::EntryKind::contiguous, static_cast<std::uint64_t>(input_.pick(1, 200))), {}); }

    void subarray()
    {
        auto const dimensions = input_.pick(0, 4);
        std::vector<std::int64_t> numbers{1 + input_.number()};
        std::uint64_t bytes = static_cast<std::uint64_t>(numbers[0]);
        for (auto left = dimensions; left > 0; --left) {
            auto const start = input_.number(), count = input_.number(), stride = 1 + input_.pick(0, 3);
            std::int64_t end = 0;
            (void)__builtin_mul_overflow(count, stride, &end);
            (void)__builtin_add_overflow(start, end, &end);
            (void)__builtin_add_overflow(end, input_.pick(0, 3), &end);
            numbers.insert(numbers.end(), {end, start, count, stride});
            bytes *= static_cast<std::uint64_t>(count);
        }
        auto first = entry(stage::EntryKind::subarray, bytes);
        first.dimensions = static_cast<std::uint16_t>(dimensions);
        put(first, numbers);
    }

    void layout()
    {
        auto const dimensions = input_.pick(0, 3);
        std::vector<std::int64_t> loops, entries;
        std::int64_t end = 0, data = 0, bytes = 0;
        for (auto left = 1 + input_.pick(0, 3); left > 0; --left) {
            auto const gap = input_.number(), length = input_.number(), skip = input_.pick(0, 3);
            (void)__builtin_add_overflow(end, gap, &end);
            (void)__builtin_add_overflow(data, skip, &data);
            entries.insert(entries.end(), {end, length, data});
            (void)__builtin_add_overflow(end, length, &end);
            (void)__builtin_add_overflow(data, length, &data);
            bytes = data;
        }
        for (auto left = dimensions; left > 0; --left) {
            auto const count = input_.number();
            std::int64_t step = 0;
            (void)__builtin_add_overflow(end, input_.number(), &step);
            loops.insert(loops.begin(), {count, step, bytes});
            (void)__builtin_mul_overflow(count, step, &end);
            (void)__builtin_mul_overflow(bytes, count, &bytes);
        }
        auto const buffer = input_.pick(0, 3) == 3 ? input_.number() : 0;
        (void)__builtin_add_overflow(bytes, buffer, &bytes);
        auto first = entry(stage::EntryKind::layout, static_cast<std::uint64_t>(bytes));
        first.dimensions = static_cast<std::uint16_t>(dimensions);
        std::vector<std::int64_t> numbers{buffer};
        numbers.insert(numbers.end(), loops.begin(), loops.end());
        numbers.insert(numbers.end(), entries.begin(), entries.end());
        put(first, numbers);
    }

    void anything()
    {
        auto first = entry(static_cast<stage::EntryKind>(input_.take<std::uint8_t>()), 8);
        first.dimensions = input_.take<std::uint16_t>();
        first.flags = input_.take<std::uint8_t>();
        first.reserved = static_cast<std::uint32_t>(input_.pick(0, 1));
        std::vector<std::int64_t> numbers;
        for (auto left = input_.pick(0, 40); left > 0; --left) numbers.push_back(input_.take<std::int64_t>());
        put(first, numbers);
    }

    void put(stage::LogEntry entry, std::vector<std::int64_t> const& numbers)
    {
        auto const bytes = sizeof entry + numbers.size() * sizeof(std::int64_t);
        if (block_.size() + bytes > stage::meta_block_bytes) return;
        entry.bytes = static_cast<std::uint32_t>(bytes);
        auto const at = block_.size();
        block_.resize(at + bytes);
        std::memcpy(block_.data() + at, &entry, sizeof entry);
        if (!numbers.empty())
            std::memcpy(block_.data() + at + sizeof entry, numbers.data(), numbers.size() * sizeof(std::int64_t));
        // As in the format: the checksum of what follows it, with the first eight bytes in the seed.
        std::uint64_t first = 0;
        std::memcpy(&first, block_.data() + at, sizeof first);
        entry.checksum = stage::checksum_of(block_.data() + at + 16, bytes - 16, seed_ ^ first);
        std::memcpy(block_.data() + at + offsetof(stage::LogEntry, checksum), &entry.checksum, sizeof entry.checksum);
        ++entries_[rank_];
    }

    void damage()
    {
        auto& bytes = input_.pick(0, 3) == 0 ? image_.data : image_.meta;
        auto const at = static_cast<std::size_t>(input_.take<std::uint32_t>()) % (bytes.size() + 1);
        if (input_.pick(0, 1) == 0)
            bytes.resize(at);
        else if (at < bytes.size())
            bytes[at] = static_cast<std::byte>(input_.take<std::uint8_t>());
        if (bytes.empty()) bytes.resize(1);
    }

    static constexpr std::size_t data_bytes = 8192;

    static std::vector<std::byte> const& some_data()
    {
        static auto const bytes = [] {
            std::vector<std::byte> made(stage::head_bytes + data_bytes);
            for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i * 31 + i / 256);
            return made;
        }();
        return bytes;
    }

    Input& input_;
    LogImage image_;
    stage::Counters counters_ = {};
    std::int64_t meta_end_ = 0;
    int damage_ = 0;
    std::uint64_t seed_ = 0;
    std::uint32_t ranks_ = 1;
    std::uint32_t rank_ = 0;
    std::uint64_t blocks_[8] = {};
    std::uint64_t entries_[8] = {};
    std::uint64_t epoch_[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    std::uint64_t next_data_ = 0;
    std::vector<std::byte> block_;
};

}  // namespace tapioca::fuzz
