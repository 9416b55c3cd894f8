#include "stage/background_drainer.hpp"

#include <algorithm>
#include <chrono>

#include <unistd.h>

#include "stage/merge.hpp"
#include "target/range_lock.hpp"

namespace tapioca::stage {

using namespace std::chrono_literals;

/// A log to which a rank, or several, still append.
struct BackgroundDrainer::FollowedLog {
    LogPlace place;
    Descriptor meta_file;
    Descriptor data_file;
    MappedFile meta;
    MappedFile data;
    std::unique_ptr<LogImage> image;
    std::map<std::uint32_t, LogImage::EntryCursor> cursors;

    /// Reads what was appended since the last call. Returns false if the log cannot be read.
    bool refresh()
    {
        if (!meta_file) {
            auto meta_opened = open_private(place.meta(), false);
            auto data_opened = open_private(place.data(), false);
            if (!meta_opened || !data_opened) return false;
            meta_file = std::move(*meta_opened);
            data_file = std::move(*data_opened);
        }
        return grow(meta, meta_file, place.meta()) && grow(data, data_file, place.data()) && look();
    }
    [[nodiscard]] core::Result<LogRequest> request_at(std::uint64_t at) const
    {
        return decode(meta.span().subspan(at), image->seed());
    }
    /// The bytes of a request, or null if they are not there yet.
    [[nodiscard]] std::byte const* data_of(Note const& entry) const
    {
        if (entry.position < head_bytes || entry.position + entry.data_bytes > data.bytes()) return nullptr;
        return data.data() + entry.position;
    }

private:
    bool grow(MappedFile& mapped, Descriptor const& file, std::string const& path)
    {
        auto const size = size_of(file.get(), path);
        if (!size) return false;
        if (*size <= mapped.bytes()) return true;
        auto larger = MappedFile::of(file.get(), 0, *size, false);
        if (!larger) return false;
        mapped = std::move(*larger);
        return true;
    }
    bool look()
    {
        auto found = LogImage::of(meta.span());
        if (!found) return false;
        image = std::make_unique<LogImage>(std::move(*found));
        return true;
    }
};

BackgroundDrainer::BackgroundDrainer(DrainSettings wish, std::unique_ptr<target::Target> target, cpu_set_t const& cores)
    : wish_(std::move(wish)), target_(std::move(target)), worker_(cores, [this] { dead_ = true; })
{
    for (auto const& place : wish_.logs) {
        sources_.push_back(std::make_unique<FollowedLog>());
        sources_.back()->place = place;
    }
}

core::Status BackgroundDrainer::launch()
{
    if (auto status = worker_.launch(); !status) return status;
    worker_.start([this] { run(); });
    return {};
}

BackgroundDrainer::~BackgroundDrainer()
{
    stop_ = true;
    changed_.notify_all();
    worker_.wait();
}

void BackgroundDrainer::run()
{
    auto nap = 1ms;
    std::unique_lock lock(mutex_);
    while (!stop_) {
        bool const may = !paused_ && !broken_;
        bool const followed = may && follow();
        bool const drained = may && drain_one();
        if (followed || drained) {
            nap = 1ms;
            lock.unlock();  // so that pause() can take the lock
            lock.lock();
            continue;
        }
        changed_.wait_for(lock, nap);
        nap = std::min(nap * 2, 16ms);
    }
}

core::Status BackgroundDrainer::sync()
{
    std::lock_guard const lock(mutex_);
    return target_->sync();
}

std::vector<Extent> BackgroundDrainer::pause()
{
    paused_ = true;
    std::lock_guard const lock(mutex_);
    std::vector<Extent> extents;
    if (dead_) return extents;
    while (follow()) {}
    if (broken_) return extents;
    for (auto const& [number, block] : blocks_) {
        if (block.drained == 0 || block.drained != block.requests.size()) continue;
        auto const begin = number * wish_.block_bytes;
        if (!extents.empty() && extents.back().offset + extents.back().length == begin)
            extents.back().length += wish_.block_bytes;
        else
            extents.push_back({begin, wish_.block_bytes});
    }
    return extents;
}

void BackgroundDrainer::resume(bool anew)
{
    {
        std::lock_guard const lock(mutex_);
        if (anew) {
            blocks_.clear();
            candidates_.clear();
            gone_.clear();
            for (auto& source : sources_) {
                auto place = source->place;
                source = std::make_unique<FollowedLog>();
                source->place = std::move(place);
            }
        }
        paused_ = false;
        broken_ = false;
    }
    changed_.notify_all();
}

/// Reads new requests. Returns true if there were any.
bool BackgroundDrainer::follow()
{
    bool any = false;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
        auto& source = *sources_[s];
        if (!source.refresh()) continue;
        for (auto const rank : source.image->ranks()) {
            auto& cursor = source.cursors[rank];
            std::string damage;
            for (auto entry = source.image->next(rank, cursor, damage); !entry.empty();
                 entry = source.image->next(rank, cursor, damage)) {
                auto const at = static_cast<std::uint64_t>(entry.data() - source.meta.data());
                enter({0, s, rank, cursor.entries, at});
                any = true;
            }
        }
    }
    return any;
}

void BackgroundDrainer::enter(Reference reference)
{
    auto const request = sources_[reference.source]->request_at(reference.at);
    if (!request) return;
    if (request->gone()) {
        gone_[{reference.source, reference.rank}] = reference.number;
        return;
    }
    reference.epoch = request->note.epoch;
    pattern::LayoutCursor cursor(request->layout);
    while (cursor.position() != pattern::no_offset) {
        auto const number = cursor.position() / wish_.block_bytes;
        auto const end = (number + 1) * wish_.block_bytes;
        auto& block = blocks_[number];
        for (pattern::PieceRun run; cursor.next(end, run);) block.bytes += run.length * run.count;
        block.requests.push_back(reference);
        if (block.bytes >= wish_.block_bytes) candidates_.push_back(number);
    }
}

bool BackgroundDrainer::overflows() const
{
    return std::any_of(wish_.beside.begin(), wish_.beside.end(),
                       [](LogPlace const& place) { return ::access(place.meta().c_str(), F_OK) == 0; });
}

/// Drains a block, if one is complete. Returns true if there may be more.
bool BackgroundDrainer::drain_one()
{
    while (!candidates_.empty() && wanted()) {
        auto const number = candidates_.back();
        candidates_.pop_back();
        auto& block = blocks_[number];
        if (block.drained == block.requests.size()) continue;
        if (drain(number, block)) {
            keep_rate(wish_.block_bytes);
            return true;
        }
    }
    return false;
}

/// Returns false if the block is not complete or cannot be written.
bool BackgroundDrainer::drain(std::int64_t number, LogBlock& block)
{
    Lock const lock(wish_.logs.front().directory);
    (void)follow();
    if (overflows()) return false;
    auto const begin = number * wish_.block_bytes;
    auto const end = begin + wish_.block_bytes;
    std::sort(block.requests.begin(), block.requests.end(),
              [](Reference const& a, Reference const& b) { return a.key() < b.key(); });
    std::byte const* base = nullptr;
    for (auto const& source : sources_)
        if (source->data.data() && (!base || source->data.data() < base)) base = source->data.data();
    Merge merge(base);
    for (auto const& reference : block.requests) {
        auto const& source = *sources_[reference.source];
        auto const request = source.request_at(reference.at);
        auto const gone = gone_.find({reference.source, reference.rank});
        // After a rank has handed over its requests, newer bytes may have been written to the same place, also past the
        // log.
        bool const void_by_now = gone != gone_.end() && reference.number < gone->second;
        auto const* const data =
            request && !request->stored() && !void_by_now ? source.data_of(request->note) : nullptr;
        if (!data) return false;  // the flush deals with it
        auto const add = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            merge.add(offset, length, data + place);
        };
        pattern::each_piece(request->layout, add, begin, end);
    }
    auto const merged = merge.finish();
    if (merged.bytes != wish_.block_bytes) return false;
    std::vector<iovec> pieces;
    for (auto const& entry : merged.layouts.front().entries)
        pieces.push_back({const_cast<std::byte*>(base) + entry.buffer, static_cast<std::size_t>(entry.length)});
    target::RangeLock const range(*target_, begin, end);
    if (!target_->write(begin, pieces)) {
        broken_ = true;
        return false;
    }
    block.drained = block.requests.size();
    drained_.fetch_add(static_cast<std::uint64_t>(wish_.block_bytes), std::memory_order_relaxed);
    return true;
}

void BackgroundDrainer::keep_rate(std::int64_t bytes)
{
    if (wish_.rate == 0) return;
    auto const pause = std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(wish_.rate));
    auto const until = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(pause);
    while (wanted() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
}

}  // namespace tapioca::stage
