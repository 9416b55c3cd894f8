#include "engine/requests.hpp"

#include <algorithm>

namespace tapioca::engine {

Requests::Requests(Context const& context, std::size_t partition, Loader& loader)
    : Inbox(context, partition, 1), loader_(loader)
{
    note_ready();
}

void Requests::note_ready()
{
    bool const sure = std::all_of(feeders_.begin(), feeders_.end(), [](Feeder const& feeder) { return feeder.heard; });
    loader_.note_wanted(ready(), sure);
}

bool Requests::may_unload(Feeder const& feeder) const
{
    return feeder.heading.round < 0 || (!feeder.replying && context_.is_there(partition_, feeder.heading.round));
}

void Requests::unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& landing)
{
    if (feeder.heading.round < 0) return;  // it only says which round follows
    auto const reply = answer(feeder, entries, landing);
    feeder.replying = true;
    context_.net->messages->send(reply, feeder.rank, tag_reply, [&feeder] { feeder.replying = false; });
}

std::span<std::byte const> Requests::answer(Feeder const& feeder, std::span<std::byte const> entries,
                                            Landing const& landing)
{
    auto const reply = landing.bytes.subspan(feeder.message_bytes);
    loader_.fill_reply(feeder.heading.round, entries, reply);
    return reply.first(sizeof(std::uint64_t) + feeder.heading.reply);
}

void Requests::unload_round(std::int64_t round)
{
    bool wanted = context_.exchange->least_taken(partition_) == context_.ticket(partition_, round);
    for (auto& feeder : feeders_) {
        look(feeder, feeder.landings[0]);
        wanted = wanted || feeder.heading.round == round;
    }
    // The ranks of this node no longer need the previous round in this buffer: they were done before the last fence but
    // two.
    if (wanted) loader_.load(round);
    for (auto const& feeder : feeders_) {
        if (feeder.heading.round != round) continue;
        auto const& landing = feeder.landings[0];
        (void)answer(feeder, landing.bytes.subspan(sizeof feeder.heading, feeder.heading.bytes), landing);
    }
    loader_.pass(round);
}

}  // namespace tapioca::engine
