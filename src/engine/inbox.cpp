#include "engine/inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tapioca::engine {

Inbox::Inbox(Context const& context, std::size_t partition, std::size_t landing_places)
    : context_(context), partition_(partition), landing_places_(landing_places)
{
    if (context.rounds(partition) == 0) return;
    auto const& network = context.route->network;
    feeders_.reserve(context.buffer_layout->feeders(partition).size());
    for (auto const& [node, rank, landing] : context.buffer_layout->feeders(partition)) {
        auto const at = static_cast<std::size_t>(node);
        auto const bytes = network.slot_bytes[at];
        Feeder feeder{node, rank, context.writing ? bytes : network.request_bytes[at], {}};
        for (std::size_t side = 0; side < landing_places; ++side)
            feeder.landings[side].bytes = {context.buffers + landing[side], bytes};
        feeders_.push_back(std::move(feeder));
    }
}

void Inbox::expect()
{
    for (auto& feeder : feeders_)  // feeders_ is not resized any more
        for (std::size_t place = 0; place < landing_places_; ++place) expect(feeder, place);
}

void Inbox::expect(Feeder& feeder, std::size_t place)
{
    auto& landing = feeder.landings[place];
    auto const room = landing.bytes.first(feeder.message_bytes);
    landing.number = context_.net->messages->receive(room, feeder.rank, tag_gathered, [this, &feeder, place] {
        feeder.landings[place].number = -1;
        if (place != feeder.next || feeder.state != Feeder::FeederState::waiting) return;
        look(feeder, feeder.landings[place]);
        note_ready();  // at once, because a loader may load while the main thread copies
    });
}

void Inbox::look(Feeder& feeder, Landing const& landing)
{
    std::memcpy(&feeder.heading, landing.bytes.data(), sizeof feeder.heading);
    bool const notice = feeder.heading.round < 0;
    feeder.ready = std::max(feeder.ready, notice ? feeder.heading.following : feeder.heading.round);
    feeder.heard = true;
}

bool Inbox::pump()
{
    bool any = false;
    for (auto& feeder : feeders_) {
        auto const& landing = feeder.landings[feeder.next];
        if (feeder.state == Feeder::FeederState::waiting && landing.number < 0 && may_unload(feeder)) {
            open(feeder, landing);
            any = true;
        }
        if (feeder.state == Feeder::FeederState::unloading && feeder.awaited == 0) {
            conclude(feeder);
            any = true;
        }
    }
    return pump_others() || any;
}

void Inbox::open(Feeder& feeder, Landing const& landing)
{
    feeder.state = Feeder::FeederState::unloading;
    feeder.awaited = feeder.heading.strays;
    unload(feeder, landing.bytes.subspan(sizeof feeder.heading, feeder.heading.bytes), landing);
    context_.exchange->beat();
}

void Inbox::conclude(Feeder& feeder)
{
    feeder.ready = feeder.heading.following;
    auto const free = std::exchange(feeder.next, (feeder.next + 1) % landing_places_);
    auto& next = feeder.landings[feeder.next];
    if (feeder.ready < context_.rounds(partition_)) {
        feeder.state = Feeder::FeederState::waiting;
        expect(feeder, free);
        if (next.number < 0) look(feeder, next);
    } else {
        feeder.state = Feeder::FeederState::over;
        if (landing_places_ > 1) context_.net->messages->cancel(next.number);
    }
    note_ready();
}

std::int64_t Inbox::ready() const
{
    auto least = context_.rounds(partition_);
    for (auto const& feeder : feeders_) least = std::min(least, feeder.ready);
    return least;
}

bool Inbox::done() const
{
    return std::all_of(feeders_.begin(), feeders_.end(), [](Feeder const& feeder) {
        return feeder.state == Feeder::FeederState::over && !feeder.replying;
    });
}

void Inbox::blank()
{
    wire::Heading const nothing{-1, 0, 0, 0, 0};
    for (auto& feeder : feeders_)
        for (std::size_t place = 0; place < landing_places_; ++place)
            std::memcpy(feeder.landings[place].bytes.data(), &nothing, sizeof nothing);
}

std::vector<int> Inbox::senders() const
{
    std::vector<int> senders;
    for (auto const& feeder : feeders_) senders.push_back(feeder.rank);
    return senders;
}

}  // namespace tapioca::engine
