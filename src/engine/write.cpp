// Writing through aggregators: ranks copy into the shared buffers of the aggregators on their node, and gather the data
// for other nodes' aggregators. Each partition's aggregator drains its buffers. Between start() and wait(), and between
// nodes if there is a core to spare, its I/O thread drains. Otherwise its main thread drains whenever it has nothing to
// copy, so that a blocking step on one node has no more threads than ranks.
#include <optional>
#include <utility>

#include "engine/arrivals.hpp"
#include "engine/carrier.hpp"
#include "engine/run.hpp"

namespace tapioca::engine {

namespace {

class WriteRun final : public Run {
public:
    explicit WriteRun(Context context) : context_(std::move(context)), drainer_(context_)
    {
        if (context_.networked()) {
            if (auto const own = context_.own_partition()) arrivals_.emplace(context_, *own, drainer_);
            carrier_ = make_carrier(context_, arrivals_ ? &*arrivals_ : nullptr);
        }
        filler_.emplace(context_, carrier_ ? &carrier_->outbox() : nullptr);
        drainer_.start();
    }
    WriteRun(WriteRun const&) = delete;
    WriteRun& operator=(WriteRun const&) = delete;
    ~WriteRun() override { drainer_.stop(); }  // before the carrier releases the messages

    bool advance(bool helping) override
    {
        if (carrier_) return carrier_->write(*filler_, drainer_, helping);
        for (;;) {
            if (filler_->fill_next()) continue;
            if (filler_->done()) return true;
            if (!helping || !drainer_.help()) return false;
        }
    }

    core::Status settle() override
    {
        wait_until(*context_.wait_policy, "the aggregator's own writes", [&] {
            if (carrier_) carrier_->serve(drainer_);
            return drainer_.over() || (drainer_.help(), drainer_.over());
        });
        drainer_.stop();
        return drainer_.status();
    }

    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return received_; }
    [[nodiscard]] std::uint64_t drained_bytes() const override { return drainer_.bytes(); }
    [[nodiscard]] double copying() const override { return filler_->copying() + drainer_.copying(); }
    [[nodiscard]] Times times() const override
    {
        Times times = drainer_.times();
        times.copying = copying();
        times.bytes = drainer_.bytes();
        return times;
    }

private:
    Context context_;
    Drainer drainer_;
    std::optional<Arrivals> arrivals_;
    std::unique_ptr<Carrier> carrier_;  ///< on several nodes
    std::optional<Filler> filler_;
    std::vector<std::uint64_t> received_;
};

}  // namespace

std::unique_ptr<Run> start_write(Context context)
{
    return std::make_unique<WriteRun>(std::move(context));
}

}  // namespace tapioca::engine
