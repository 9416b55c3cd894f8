#include "engine/inbox.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace tapioca::engine {

namespace {

wire::Heading heading_of(std::span<std::byte const> message)
{
    wire::Heading heading;
    std::memcpy(&heading, message.data(), sizeof heading);
    return heading;
}

}  // namespace

Inbox::Inbox(Place const& place, Work const& work, std::size_t partition, Place_pieces place_pieces)
    : place_(place), work_(&work), partition_(partition), place_pieces_(std::move(place_pieces))
{
    auto const& network = work.route->network;
    bool const one_sided = network.transport == plan::Transport::rma;
    if (work.schedule.partitions[partition].rounds == 0) return;
    feeders_.reserve(work.site->feeders(partition).size());
    for (auto const& [node, rank, landing] : work.site->feeders(partition)) {
        auto const bytes = network.slot_bytes[static_cast<std::size_t>(node)];
        Feeder feeder{node, rank, {}};
        for (std::size_t side = 0; side < 2; ++side)
            feeder.landings[side].bytes = {place.buffers + landing[side], bytes};
        feeders_.push_back(std::move(feeder));
    }
    if (one_sided) return;
    for (auto& feeder : feeders_)
        for (std::size_t side = 0; side < 2; ++side) expect(feeder, side);
}

void Inbox::expect(Feeder& feeder, std::size_t place)
{
    auto& landing = feeder.landings[place];
    landing.number = place_.net->messages->receive(landing.bytes, feeder.rank, tag_gathered, [this, &feeder, place] {
        feeder.landings[place].number = -1;
        if (place == feeder.next && feeder.state == Feeder::State::waiting) look(feeder);
    });
}

/// Reads the heading of the next message, which tells which rounds its node has nothing in.
void Inbox::look(Feeder& feeder)
{
    feeder.heading = heading_of(feeder.landings[feeder.next].bytes);
    feeder.ready = std::max(feeder.ready, feeder.heading.round);
}

std::byte* Inbox::buffer(std::int64_t round) const
{
    return place_.buffer(*work_->site, partition_, static_cast<std::size_t>(round % work_->route->buffers));
}

bool Inbox::pump(std::int64_t open)
{
    bool any = false;
    for (auto& feeder : feeders_) {
        bool const here = feeder.state == Feeder::State::waiting && feeder.landings[feeder.next].number < 0;
        if (here && feeder.heading.round < open) {
            unload(feeder, feeder.landings[feeder.next].bytes);
            any = true;
        }
        if (feeder.state == Feeder::State::unloading && feeder.awaited == 0) {
            conclude(feeder);
            any = true;
        }
    }
    if (strays_due_ == 0 && strays_.empty()) return any;
    any = take_strays() || any;
    for (auto& feeder : feeders_)
        if (feeder.state == Feeder::State::unloading) any = place_strays(feeder) || any;
    return any;
}

std::int64_t Inbox::ready() const
{
    auto least = work_->schedule.partitions[partition_].rounds;
    for (auto const& feeder : feeders_) least = std::min(least, feeder.ready);
    return least;
}

void Inbox::unload(Feeder& feeder, std::span<std::byte const> message)
{
    auto const& heading = feeder.heading;
    feeder.state = Feeder::State::unloading;
    feeder.awaited = heading.strays;
    strays_due_ += heading.strays;
    auto entries = message.subspan(sizeof heading, heading.bytes);
    while (!entries.empty()) {
        auto const entry = wire::take_entry(entries);
        if (entry.heading.way == wire::Way::apart)
            receive_apart(feeder, heading.round, entry);
        else
            place_pieces_(heading.round, wire::Runs(entry.runs),
                          entry.heading.way == wire::Way::inside ? entry.data.data() : nullptr);
    }
    place_.exchange->beat();
}

void Inbox::receive_apart(Feeder& feeder, std::int64_t round, wire::Entry const& entry)
{
    ++feeder.awaited;
    pattern::Run run;
    wire::Runs runs(entry.runs);
    runs.next(run);
    bool const one_piece = run.count == 1 && !wire::Runs(runs).next(run);
    auto const bytes = entry.heading.data_bytes;
    if (one_piece) {
        wire::Runs(entry.runs).next(run);
        place_.net->messages->receive({buffer(round) + run.offset, bytes}, entry.heading.rank, tag_apart,
                                      [this, &feeder, round, where = entry.runs] {
                                          place_pieces_(round, wire::Runs(where), nullptr);
                                          --feeder.awaited;
                                      });
        return;
    }
    auto const data = std::make_shared<std::vector<std::byte>>(bytes);
    place_.net->messages->receive(*data, entry.heading.rank, tag_apart,
                                  [this, &feeder, round, data, where = entry.runs] {
                                      place_pieces_(round, wire::Runs(where), data->data());
                                      --feeder.awaited;
                                  });
}

bool Inbox::take_strays()
{
    bool any = false;
    while (auto bytes = place_.net->messages->take(tag_stray)) {
        Stray stray{{}, std::move(*bytes)};
        std::memcpy(&stray.heading, stray.bytes.data(), sizeof stray.heading);
        strays_.push_back(std::move(stray));
        any = true;
    }
    return any;
}

bool Inbox::place_strays(Feeder& feeder)
{
    auto const mine = std::stable_partition(strays_.begin(), strays_.end(), [&](Stray const& stray) {
        return stray.heading.node != feeder.node || stray.heading.round != feeder.heading.round;
    });
    for (auto stray = mine; stray != strays_.end(); ++stray) {
        auto bytes = std::span<std::byte const>(stray->bytes).subspan(sizeof stray->heading);
        auto const entry = wire::take_entry(bytes);
        place_pieces_(stray->heading.round, wire::Runs(entry.runs), entry.data.data());
        --feeder.awaited;
        --strays_due_;
    }
    bool const any = mine != strays_.end();
    strays_.erase(mine, strays_.end());
    return any;
}

void Inbox::conclude(Feeder& feeder)
{
    feeder.ready = feeder.heading.following;
    auto const free = std::exchange(feeder.next, 1 - feeder.next);
    if (feeder.ready < work_->schedule.partitions[partition_].rounds) {
        feeder.state = Feeder::State::waiting;
        expect(feeder, free);
        if (feeder.landings[feeder.next].number < 0) look(feeder);
        return;
    }
    feeder.state = Feeder::State::over;
    place_.net->messages->cancel(feeder.landings[feeder.next].number);
}

void Inbox::clear()
{
    wire::Heading const nothing{-1, 0, 0, 0, 0};
    for (auto& feeder : feeders_)
        for (auto const& landing : feeder.landings) std::memcpy(landing.bytes.data(), &nothing, sizeof nothing);
}

void Inbox::open_round()
{
    if (feeders_.empty()) return;
    std::vector<int> senders;
    for (auto const& feeder : feeders_) senders.push_back(feeder.rank);
    place_.net->window->post(senders);
}

bool Inbox::round_is_there()
{
    return feeders_.empty() || place_.net->window->test();
}

void Inbox::unload_round(std::int64_t round)
{
    for (auto& feeder : feeders_) {
        auto const landing = feeder.landings[round % 2].bytes;
        feeder.heading = heading_of(landing);
        if (feeder.heading.round != round) continue;
        unload(feeder, landing);
        wait_until(*place_.patience, "a message that was announced", [&] {
            place_.net->messages->poll();
            take_strays();
            place_strays(feeder);
            return feeder.awaited == 0;
        });
    }
    for (auto& feeder : feeders_) feeder.ready = round + 1;
}

}  // namespace tapioca::engine
