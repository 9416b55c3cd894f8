#include "stage/log_image.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace tapioca::stage {

namespace {

/// The first eight bytes of a block or an entry, which are written last.
std::uint64_t first_of(std::span<std::byte const> bytes)
{
    return __atomic_load_n(reinterpret_cast<std::uint64_t const*>(bytes.data()), __ATOMIC_ACQUIRE);
}

}  // namespace

core::Result<LogImage> LogImage::of(std::span<std::byte const> meta, std::uint64_t end, std::uint64_t begin)
{
    auto const head = read_head(meta, meta_magic);
    if (!head) return tl::unexpected(head.error());
    LogImage image(meta);
    image.head_ = *head;
    image.seed_ = seed_of(*head);
    image.find_blocks(begin, end);
    return image;
}

void LogImage::find_blocks(std::uint64_t begin, std::uint64_t end)
{
    Counters counters;
    std::memcpy(&counters, meta_.data() + sizeof(Head), sizeof counters);
    if (is_finished(head_, meta_)) return;
    appended_ = counters.entries;
    continued_ = counters.beside;
    bool const begun = counters.emptied == head_.generation + 1;  // emptying has begun, but not progressed further
    if ((counters.emptied != head_.generation && !begun) || counters.emptied_inverted != ~head_.generation)
        damage_.emplace_back("the first page is damaged");
    end = std::min(end, counters.meta_end);
    if (end > meta_.size()) damage_.push_back(fmt::format("truncated: {} of {} bytes are there", meta_.size(), end));
    auto at = std::max<std::uint64_t>(head_bytes, begin);
    std::uint64_t not_begun =
        0;  // the first block after the last sound one that had not been begun when it was examined
    while (at < meta_.size()) {
        auto const rest = meta_.subspan(at);
        LogBlock block = {};
        auto const first = rest.size() >= sizeof block ? first_of(rest) : 0;
        std::memcpy(&block, rest.data(), std::min(rest.size(), sizeof block));
        if (rest.size() >= sizeof block) std::memcpy(&block, &first, sizeof first);
        bool const sound = rest.size() >= sizeof block && is_sound(block, seed_) && block.rank < head_.ranks;
        if (!sound) {
            auto const length = std::min<std::uint64_t>(rest.size(), meta_block_bytes);
            // A rank that was about to begin the block may have written its head, whose first bytes are written last.
            bool const unnamed = block.magic == 0 && block.rank == 0 && rest.size() >= sizeof block;
            auto const untouched = rest.first(length).subspan(unnamed ? sizeof block : 0);
            bool const touched = !is_zero(untouched);
            if (touched && rest.size() >= sizeof block && first_of(rest) != first) continue;  // begun just now
            if (touched && not_begun != 0 && first_of(meta_.subspan(not_begun)) != 0) {  // begun just now: part of it
                at = std::exchange(not_begun, 0);
                continue;
            }
            if (!touched && not_begun == 0 && rest.size() >= sizeof block) not_begun = at;
            if (touched) {
                damage_.push_back(fmt::format("the block at byte {} is damaged", at));
                damaged_.push_back(rest.first(length));
            }
            at += meta_block_bytes;
            continue;
        }
        if (at + block.bytes > first_of(meta_.subspan(sizeof(Head) + offsetof(Counters, meta_end))))
            damage_.push_back(fmt::format("a block at byte {} lies behind the end that the head tells", at));
        not_begun = 0;
        auto const length = std::min<std::uint64_t>(block.bytes, rest.size());
        if (!blocks_[block.rank].try_emplace(block.number, LogPlace{at, length, block.first_entry}).second)
            damage_.push_back(fmt::format("rank {} has block {} twice", block.rank, block.number));
        at += block.bytes;
    }
}

std::optional<std::string> LogImage::missing_entries() const
{
    std::uint64_t found = 0;
    for (auto const rank : ranks()) {
        EntryCursor cursor;
        std::string damage;
        while (!next(rank, cursor, damage).empty()) ++found;
        if (!damage.empty()) return {};  // reported elsewhere
    }
    if (found >= appended_) return {};  // a writer that was killed may not have counted its last entry
    return fmt::format("{} of {} entries are missing", appended_ - found, appended_);
}

std::vector<std::uint32_t> LogImage::ranks() const
{
    std::vector<std::uint32_t> ranks;
    for (auto const& [rank, blocks] : blocks_) ranks.push_back(rank);
    return ranks;
}

std::span<std::byte const> LogImage::next(std::uint32_t rank, EntryCursor& cursor, std::string& damage) const
{
    auto const own = blocks_.find(rank);
    if (own == blocks_.end()) return {};
    auto const& blocks = own->second;
    while (true) {
        auto const block = blocks.find(cursor.block);
        if (block == blocks.end()) {
            if (blocks.rbegin()->first >= cursor.block)
                damage = fmt::format("rank {}: block {} is missing", rank, cursor.block);
            return {};
        }
        auto const& place = block->second;
        cursor.begin = place.begin;
        if (place.first_entry != cursor.entries && cursor.at == sizeof(LogBlock)) {
            damage = fmt::format("rank {}: entries {} to {} are missing", rank, cursor.entries, place.first_entry);
            return {};
        }
        auto const rest = meta_.subspan(place.begin, place.bytes).subspan(std::min(cursor.at, place.bytes));
        std::uint64_t first = 0;  // the eight bytes that are written last
        if (rest.size() >= sizeof first) first = first_of(rest);
        if (first == 0) {  // the end of the block, or of what has been written
            if (blocks.rbegin()->first == cursor.block) return {};
            ++cursor.block;
            cursor.at = sizeof(LogBlock);
            continue;
        }
        auto const entry = decode_entry(rest, seed_);
        if (!entry) {
            damage = fmt::format("rank {}: entry {}: {}", rank, cursor.entries, entry.error().text);
            return {};
        }
        if (entry->epoch < std::max(cursor.epoch, head_.epoch)) {
            damage = fmt::format("rank {}: entry {} is older than what comes before it", rank, cursor.entries);
            return {};
        }
        cursor.at += entry->bytes;
        cursor.epoch = entry->epoch;
        ++cursor.entries;
        return rest.first(entry->bytes);
    }
}

bool LogImage::hands_over_behind(std::uint32_t rank, EntryCursor const& cursor) const
{
    LogEntry gone = {};
    gone.bytes = sizeof gone;
    gone.kind = EntryKind::contiguous;
    gone.flags = flag_gone;
    auto const is_in = [&](std::span<std::byte const> block, bool whose) {
        for (; block.size() >= sizeof gone; block = block.subspan(8)) {
            if (std::memcmp(block.data(), &gone, 8) != 0) continue;
            auto const entry = decode_entry(block, seed_);
            if (entry && (whose || entry->variable == rank)) return true;
        }
        return false;
    };
    if (auto const own = blocks_.find(rank); own != blocks_.end())
        for (auto const& [number, place] : own->second) {
            auto const from = number == cursor.block ? cursor.at : sizeof(LogBlock);
            if (number >= cursor.block &&
                is_in(meta_.subspan(place.begin, place.bytes).subspan(std::min(from, place.bytes)), true))
                return true;
        }
    return std::any_of(damaged_.begin(), damaged_.end(), [&](auto block) { return is_in(block, false); });
}

}  // namespace tapioca::stage
