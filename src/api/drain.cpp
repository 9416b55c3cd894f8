#include "api/drain.hpp"

#include <array>
#include <cstdint>

#include "api/state.hpp"

namespace tapioca::api {

namespace {

/// The failure that the ranks agreed on, without the words that were put before it.
core::Failure failure_of(Error const& error)
{
    std::string text = error.what();
    auto const path = error.path() + ": ";
    if (auto const at = text.find(path); at != std::string::npos) text = text.substr(at + path.size());
    return {error.code(), error.sys_errno(), error.rank(), text};
}

}  // namespace

Drain::Drain(std::shared_ptr<FileState> file, stage::Content& content, std::vector<Extent> done, Progress progress)
    : file_(std::move(file)), content_(content), done_(std::move(done)), progress_(std::move(progress))
{
}

core::Status Drain::all()
{
    auto const& team = file_->pool->team();
    std::array<std::int64_t, 1> tainted = {content_.tainted() ? 0 : 1};
    if (auto status = file_->pool->least(tainted); !status) return status;
    if (tainted[0] == 0) content_.rewrite_stored();
    auto const batch = content_.batch(0, UINT64_MAX - 1);
    auto const total = file_->pool->sum(pattern::summarise(batch.claims), {});
    if (!total) return tl::unexpected(total.error());
    if (total->bytes == 0) return {};
    bool const apart = team.size() == 1 || total->dense() || find_overlap(team, batch.claims, *total).has_value();
    if (apart && done_.empty()) return run(batch);
    if (apart) return run(content_.batch(0, UINT64_MAX - 1, done_));
    // What was drained in the background may be older than another rank's bytes. All is written again, by its owner.
    return run(content_.batch(0, UINT64_MAX - 1, owned_by_others(team, content_, *total)));
}

core::Status Drain::run(stage::Batch const& batch)
try {
    auto const step = declare(file_, batch.variables);
    step->past_the_log();
    if (batch.bytes > 0) step->supply(0, batch.data, batch.bytes, Op::write);
    step->start(false);
    (void)step->wait();
    if (progress_) progress_(batch.bytes);
    return {};
} catch (Error const& error) {
    return tl::unexpected(failure_of(error));
}

core::Status replay(std::shared_ptr<FileState> const& file, stage::Content& content,
                    std::function<void(std::uint64_t)> const& progress)
{
    content.rewrite_stored();  // the target may have lost it with its machine
    return Drain(file, content, {}, progress).all();
}

}  // namespace tapioca::api
