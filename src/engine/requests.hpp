// Requests: how an aggregator that reads answers the other nodes.
#pragma once

#include "engine/inbox.hpp"
#include "engine/loader.hpp"

namespace tapioca::engine {

class Requests final : public Inbox {
public:
    /// For the aggregator of `partition`. The arguments must outlive this object.
    Requests(Context const& context, std::size_t partition, Loader& loader);
    /// Loads the round, if it is wanted, and puts the replies where the other nodes get them.
    void unload_round(std::int64_t round) override;

private:
    [[nodiscard]] bool may_unload(Feeder const& feeder) const override;
    void unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& landing) override;
    void note_ready() override;
    [[nodiscard]] std::span<std::byte const> answer(Feeder const& feeder, std::span<std::byte const> entries,
                                                    Landing const& landing);

    Loader& loader_;
};

}  // namespace tapioca::engine
