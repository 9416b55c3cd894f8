// Carrier: moves a step's data between nodes. It connects fillers and takers with drainers and loaders, and contains
// everything that differs between transports. To add a transport, derive a class, and add a line to make_carrier() and
// a plan::Transport.
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
    /// Drops operations that are still under way if the step was not completed.
    virtual ~Carrier();

    /// Where the ranks of the node put what the carrier is to send.
    [[nodiscard]] Outbox& outbox() { return outbox_; }

    /// Advances a write: lets `filler` fill, sends complete rounds to the drainers of other nodes, and receives their
    /// data. If `helping`, lets `drainer` drain instead of waiting. Returns true when this rank has nothing more to
    /// fill or to send.
    virtual bool write(Filler& filler, Drainer& drainer, bool helping) = 0;
    /// Serves messages at the end of a write, while this rank waits for its drainer.
    virtual void serve(Drainer& drainer) = 0;
    /// Advances a read: lets `taker` ask and take, sends requests to the loaders of other nodes and receives their
    /// replies. If `helping`, lets `loader` load instead of waiting. Returns true when this rank has nothing more to
    /// take, to load or to send.
    virtual bool read(Taker& taker, Loader& loader, bool helping) = 0;
    /// Whether a loader may load a round at any time, also on the I/O thread.
    [[nodiscard]] virtual bool reads_ahead() const = 0;

protected:
    /// `can_put` as for Outbox. `inbox` is null on ranks that do not aggregate. `context` and `inbox` must outlive this
    /// object.
    Carrier(Context const& context, Inbox* inbox, bool can_put);

    Context const& context_;
    Outbox outbox_;
    Inbox* inbox_;
};

/// The carrier for the route's transport.
std::unique_ptr<Carrier> make_carrier(Context const& context, Inbox* inbox);
/// With messages.
std::unique_ptr<Carrier> make_p2p(Context const& context, Inbox* inbox);
/// With put and get.
std::unique_ptr<Carrier> make_rma(Context const& context, Inbox* inbox);

}  // namespace tapioca::engine
