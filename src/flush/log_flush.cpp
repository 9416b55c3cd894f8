#include "flush/log_flush.hpp"

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "core/stopwatch.hpp"
#include "engine/overlap.hpp"
#include "engine/transfer.hpp"
#include "flush/owners.hpp"

namespace tapioca::flush {

LogFlush::LogFlush(file::OpenFile& file, report::Account& account, stage::LogContent& content, std::vector<Extent> done,
                   OnProgress progress)
    : file_(file), account_(account), content_(content), done_(std::move(done)), progress_(std::move(progress))
{
}

core::Status LogFlush::all()
{
    auto const& team = file_.session->team();
    std::array<std::int64_t, 1> doubtful = {content_.doubtful() ? 0 : 1};
    if (auto status = file_.session->agreement().least(doubtful); !status) return status;
    if (doubtful[0] == 0) content_.rewrite_stored();
    auto const batch = content_.batch(0, UINT64_MAX - 1);
    auto const total = file_.session->agreement().sum(pattern::summarise(batch.claims), {});
    if (!total) return tl::unexpected(total.error());
    if (total->bytes == 0) return {};
    bool const apart =
        team.size() == 1 || total->dense() || engine::find_overlap(team, batch.claims, *total).has_value();
    if (apart && done_.empty()) return run(batch);
    if (apart) return run(content_.batch(0, UINT64_MAX - 1, done_));
    // What was drained in the background may be older than another rank's bytes. Therefore everything is written again,
    // each byte by its owner.
    return run(content_.batch(0, UINT64_MAX - 1, owned_by_others(team, content_, *total)));
}

core::Status LogFlush::run(stage::Batch const& batch)
{
    if (file_.write_chunks) {
        auto const status = file_.write_chunks(batch.variables, batch.data);
        if (status && progress_) progress_(batch.bytes);
        return status;
    }
    auto& session = *file_.session;
    auto plan = [&]() -> core::Result<plan::Plan> {
        report::Planning planning(account_, session.team());
        auto made = file_.plan(batch.variables);
        if (!made) return made;
        if (auto same = file_.compare("the plan", plan::explain(*made, {})); !same) return tl::unexpected(same.error());
        planning.done(*made, batch.variables, file_.settings);
        return made;
    }();
    if (!plan) return tl::unexpected(plan.error());
    engine::Transfer transfer(file_.session, file_.around, batch.variables, std::move(*plan));
    if (transfer.plan().job.nodes == 1)  // all ranks have a plan, or none has
        if (auto status = session.agreement().agree({}); !status) return status;
    try {
        return move(transfer, batch);
    } catch (std::bad_alloc const&) {
        transfer.stop();
        session.lose();
        return session.agreement().lost();
    }
}

/// Writes the batch.
core::Status LogFlush::move(engine::Transfer& transfer, stage::Batch const& batch)
{
    auto& session = *file_.session;
    double inside = 0;
    engine::Transfer::RunOutcome outcome;
    {
        core::Stopwatch const watch(inside);
        if (session.agreement().abandoned()) return session.agreement().lost();
        if (auto same = file_.compare("the file", file_.path); !same) return same;
        using engine::Op;
        transfer.take_as_announced(Op::write);
        if (auto ready = transfer.prepare(false); !ready) {
            transfer.call_off();
            return ready;
        }
        std::array<std::byte*, 1> const data = {batch.data};
        transfer.start({data, {}, 0, false, file_.storage.block_bytes, &file_.lazy_target}, false);
        outcome = transfer.wait({});
    }
    account_.write.add(outcome, inside);  // steps and bytes were counted when they went into the log
    if (outcome.status && progress_) progress_(batch.bytes);
    return outcome.status;
}

core::Status replay(file::OpenFile& file, report::Account& account, stage::LogContent& content,
                    LogFlush::OnProgress const& progress)
{
    file.watch("recover");
    content.rewrite_stored();  // the target may have lost it when its machine stopped
    return LogFlush(file, account, content, {}, progress).all();
}

}  // namespace tapioca::flush
