// Reading across nodes: each partition's aggregator loads its rounds. The ranks of its node copy from its buffers.
// Other nodes ask for their pieces: a node's requests for a round are one message, and the reply is another.
#include <optional>
#include <utility>

#include "engine/carrier.hpp"
#include "engine/requests.hpp"
#include "engine/run.hpp"

namespace tapioca::engine {

namespace {

class RemoteReadRun final : public Run {
public:
    explicit RemoteReadRun(Context context) : context_(std::move(context)), loader_(context_)
    {
        if (auto const own = context_.own_partition()) requests_.emplace(context_, *own, loader_);
        carrier_ = make_carrier(context_, requests_ ? &*requests_ : nullptr);
        taker_.emplace(context_, carrier_->outbox());
        if (carrier_->reads_ahead()) loader_.start();
    }
    RemoteReadRun(RemoteReadRun const&) = delete;
    RemoteReadRun& operator=(RemoteReadRun const&) = delete;
    ~RemoteReadRun() override { loader_.stop(); }  // before the carrier releases the messages

    bool advance(bool helping) override { return carrier_->read(*taker_, loader_, helping); }

    core::Status settle() override
    {
        loader_.stop();
        auto status = taker_->status();
        core::keep_first(status, loader_.status());
        return status;
    }

    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return taker_->received(); }
    [[nodiscard]] std::uint64_t drained_bytes() const override { return loader_.bytes(); }
    [[nodiscard]] double copying() const override { return taker_->copying() + loader_.copying(); }
    [[nodiscard]] Times times() const override
    {
        Times times = loader_.times();
        times.copying = copying();
        times.bytes = loader_.bytes();
        return times;
    }

private:
    Context context_;
    Loader loader_;
    std::optional<Requests> requests_;
    std::unique_ptr<Carrier> carrier_;
    std::optional<Taker> taker_;
};

}  // namespace

std::unique_ptr<Run> start_remote_read(Context context)
{
    return std::make_unique<RemoteReadRun>(std::move(context));
}

}  // namespace tapioca::engine
