#include "engine/arrivals.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace tapioca::engine {

Arrivals::Arrivals(Context const& context, std::size_t partition, Drainer& drainer)
    : Inbox(context, partition, 2), drainer_(drainer)
{
    note_ready();
}

void Arrivals::note_ready()
{
    drainer_.note_arrived(ready());
}

bool Arrivals::may_unload(Feeder const& feeder) const
{
    return feeder.heading.round < 0 || context_.is_free(partition_, feeder.heading.round);
}

void Arrivals::unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& /*landing*/)
{
    auto const round = feeder.heading.round;
    strays_due_ += feeder.heading.strays;
    while (!entries.empty()) {
        auto const entry = wire::take_entry(entries);
        if (entry.heading.way == wire::DataPath::apart)
            receive_apart(feeder, round, entry);
        else
            drainer_.take_in(round, wire::Runs(entry.runs),
                             entry.heading.way == wire::DataPath::inside ? entry.data.data() : nullptr);
    }
}

void Arrivals::receive_apart(Feeder& feeder, std::int64_t round, wire::MessageEntry const& entry)
{
    ++feeder.awaited;
    pattern::PieceRun run;
    wire::Runs runs(entry.runs);
    runs.next(run);
    bool const one_piece = run.count == 1 && !wire::Runs(runs).next(run);
    auto const bytes = entry.heading.data_bytes;
    if (one_piece) {
        wire::Runs(entry.runs).next(run);
        context_.net->messages->receive({context_.buffer(partition_, round) + run.offset, bytes}, entry.heading.rank,
                                        tag_apart, [this, &feeder, round, where = entry.runs] {
                                            drainer_.take_in(round, wire::Runs(where), nullptr);
                                            --feeder.awaited;
                                        });
        return;
    }
    auto const data = std::make_shared<std::vector<std::byte>>(bytes);
    context_.net->messages->receive(*data, entry.heading.rank, tag_apart,
                                    [this, &feeder, round, data, where = entry.runs] {
                                        drainer_.take_in(round, wire::Runs(where), data->data());
                                        --feeder.awaited;
                                    });
}

bool Arrivals::pump_others()
{
    if (strays_due_ == 0 && strays_.empty()) return false;
    bool any = take_strays();
    for (auto& feeder : feeders_)
        if (feeder.state == Feeder::FeederState::unloading) any = place_strays(feeder) || any;
    return any;
}

bool Arrivals::take_strays()
{
    bool any = false;
    while (auto bytes = context_.net->messages->take(tag_stray)) {
        Stray stray{{}, std::move(*bytes)};
        std::memcpy(&stray.heading, stray.bytes.data(), sizeof stray.heading);
        strays_.push_back(std::move(stray));
        any = true;
    }
    return any;
}

bool Arrivals::place_strays(Feeder& feeder)
{
    auto const mine = std::stable_partition(strays_.begin(), strays_.end(), [&](Stray const& stray) {
        return stray.heading.node != feeder.node || stray.heading.round != feeder.heading.round;
    });
    for (auto stray = mine; stray != strays_.end(); ++stray) {
        auto bytes = std::span<std::byte const>(stray->bytes).subspan(sizeof stray->heading);
        auto const entry = wire::take_entry(bytes);
        drainer_.take_in(stray->heading.round, wire::Runs(entry.runs), entry.data.data());
        --feeder.awaited;
        --strays_due_;
    }
    bool const any = mine != strays_.end();
    strays_.erase(mine, strays_.end());
    return any;
}

void Arrivals::unload_round(std::int64_t round)
{
    for (auto& feeder : feeders_) {
        auto const& landing = feeder.landings[round % 2];
        look(feeder, landing);
        if (feeder.heading.round != round) continue;
        open(feeder, landing);
        wait_until(*context_.wait_policy, "a message that was announced", [&] {
            context_.net->messages->poll();
            take_strays();
            place_strays(feeder);
            return feeder.awaited == 0;
        });
    }
    for (auto& feeder : feeders_) feeder.ready = round + 1;
    note_ready();
}

}  // namespace tapioca::engine
