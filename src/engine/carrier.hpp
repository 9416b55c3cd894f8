// Carrier: how a step crosses nodes. It goes between those who fill or take and those who drain or load, and is all
// that differs between transports: to add one, derive a class, and add a line to make_carrier() and a plan::Transport.
#pragma once

#include <memory>

#include "engine/context.hpp"
#include "engine/drainer.hpp"
#include "engine/filler.hpp"
#include "engine/inbox.hpp"
#include "engine/loader.hpp"
#include "engine/outbox.hpp"
#include "engine/taker.hpp"

namespace tapioca::engine {

class Carrier {
public:
    Carrier(Carrier const&) = delete;
    Carrier& operator=(Carrier const&) = delete;
    /// Forgets what is under way, if the step did not come to its end.
    virtual ~Carrier();

    /// Where the ranks of the node put what is to be carried.
    [[nodiscard]] Outbox& outbox() { return outbox_; }

    /// Goes on with a write: lets `filler` fill, brings what is complete to the drainers of other nodes, and takes in
    /// what they bring; if `helping`, lets `drainer` drain where it would otherwise wait. True when this rank has no
    /// more to fill or to carry.
    virtual bool write(Filler& filler, Drainer& drainer, bool helping) = 0;
    /// The last of a write, while this rank waits for its drainer.
    virtual void serve(Drainer& drainer) = 0;
    /// Goes on with a read: lets `taker` ask and take, brings requests to the loaders of other nodes and their replies
    /// back; if `helping`, lets `loader` load where it would otherwise wait. True when this rank has no more to take,
    /// to load or to carry.
    virtual bool read(Taker& taker, Loader& loader, bool helping) = 0;
    /// Whether a loader may load a round at any time, and on the worker.
    [[nodiscard]] virtual bool reads_ahead() const = 0;

protected:
    /// `can_put` as for Outbox. `inbox` is null on ranks that do not aggregate. Both must outlive this.
    Carrier(Context const& context, Inbox* inbox, bool can_put);

    Context const& context_;
    Outbox outbox_;
    Inbox* inbox_;
};

/// The one that the route asks for.
std::unique_ptr<Carrier> make_carrier(Context const& context, Inbox* inbox);
/// With messages.
std::unique_ptr<Carrier> make_p2p(Context const& context, Inbox* inbox);
/// With put and get.
std::unique_ptr<Carrier> make_rma(Context const& context, Inbox* inbox);

}  // namespace tapioca::engine
