#include "api/drain.hpp"

#include <array>
#include <utility>

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

Drain::Drain(std::shared_ptr<FileState> file, stage::Content& content, std::vector<Extent> done, Progress progress,
             std::function<void()> before_overwriting)
    : file_(std::move(file)),
      content_(content),
      done_(std::move(done)),
      progress_(std::move(progress)),
      before_overwriting_(std::move(before_overwriting))
{
}

core::Status Drain::all()
{
    auto const mine = content_.epochs();
    // Nobody's epochs pass 2^62, and a rank without requests has none.
    std::array<std::int64_t, 3> range = {INT64_MAX, 0, content_.tainted() ? -1 : 0};
    if (mine.first <= mine.last) {
        range[0] = static_cast<std::int64_t>(mine.first);
        range[1] = -static_cast<std::int64_t>(mine.last);
    }
    if (auto status = file_->pool->least(range); !status) return status;
    if (range[0] == INT64_MAX) return {};
    tainted_ = range[2] != 0;
    if (tainted_) content_.rewrite_stored();
    return window(static_cast<std::uint64_t>(range[0]), static_cast<std::uint64_t>(-range[1]));
}

/// If ranks overlap somewhere, the epochs are halved until they do so within one epoch only.
core::Status Drain::window(std::uint64_t first, std::uint64_t last)
{
    auto const batch = content_.batch(first, last);
    auto const total = file_->pool->sum(pattern::summarise(batch.claims), {});
    if (!total) return tl::unexpected(total.error());
    if (total->bytes == 0) return {};
    bool const apart = first == last || file_->pool->team().size() == 1 || total->dense() ||
                       find_overlap(file_->pool->team(), batch.claims, *total).has_value();
    if (apart && done_.empty()) return run(batch);
    if (apart) return run(content_.batch(first, last, done_));
    done_.clear();
    if (auto status = take_back(); !status) return status;
    auto const middle = first + (last - first) / 2;
    auto status = window(first, middle);
    return status ? window(middle + 1, last) : status;
}

/// What went to the target at once is about to be overwritten by what is older, and to be written again in its
/// turn: as the target has it, or, if that may have happened already, as the log has it.
core::Status Drain::take_back()
{
    if (std::exchange(taken_back_, true)) return {};
    auto status = core::Status();
    auto* const target = file_->target();
    if (tainted_ || !before_overwriting_)
        content_.rewrite_stored();
    else
        status = target ? content_.read_back(*target) : file_->target_status();
    status = file_->pool->agree(status);
    if (status && before_overwriting_) before_overwriting_();
    return status;
}

core::Status Drain::run(stage::Batch const& batch)
try {
    ++windows_;
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
    return Drain(file, content, {}, progress, {}).all();
}

}  // namespace tapioca::api
