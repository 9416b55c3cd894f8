#include "engine/carrier.hpp"

namespace tapioca::engine {

Carrier::Carrier(Context const& context, Inbox* inbox, bool can_put)
    : context_(context), outbox_(context, can_put), inbox_(inbox)
{
    for (std::size_t p = 0; p < context.partitions(); ++p) context.exchange->raise_progress(p, context.ticket(p, 0));
}

Carrier::~Carrier()
{
    if (!context_.net->messages->idle()) context_.net->messages->drop();
}

std::unique_ptr<Carrier> make_carrier(Context const& context, Inbox* inbox)
{
    switch (context.route->network.transport) {
    case plan::Transport::p2p: return make_p2p(context, inbox);
    case plan::Transport::rma: return make_rma(context, inbox);
    }
    return nullptr;
}

}  // namespace tapioca::engine
