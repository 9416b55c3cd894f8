// Arrivals: how the other nodes' pieces reach an aggregator's buffers.
#pragma once

#include <vector>

#include "engine/drainer.hpp"
#include "engine/inbox.hpp"

namespace tapioca::engine {

class Arrivals final : public Inbox {
public:
    /// For the aggregator of `partition`. The arguments must outlive this object.
    Arrivals(Context const& context, std::size_t partition, Drainer& drainer);
    void unload_round(std::int64_t round) override;

private:
    /// A stray entry that waits for its round.
    struct Stray {
        wire::StrayHeading heading;
        std::vector<std::byte> bytes;
    };

    [[nodiscard]] bool may_unload(Feeder const& feeder) const override;
    void unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& landing) override;
    void note_ready() override;
    bool pump_others() override;
    void receive_apart(Feeder& feeder, std::int64_t round, wire::MessageEntry const& entry);
    bool take_strays();
    bool place_strays(Feeder& feeder);

    Drainer& drainer_;
    std::vector<Stray> strays_;
    std::size_t strays_due_ = 0;  ///< announced, but not yet received
};

}  // namespace tapioca::engine
