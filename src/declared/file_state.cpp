#include "declared/file_state.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include <fmt/core.h>

#include "core/warn.hpp"
#include "declared/step_state.hpp"
#include "declared/subfiled_step.hpp"
#include "declared/subfiles.hpp"
#include "file/on_tier.hpp"
#include "file/opening.hpp"
#include "report/report.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::declared {

namespace {

/// Runs the body of a collective call. A rank that runs out of memory cannot get to the place where the others wait for
/// it, so all ranks get the error instead.
template <class Body>
auto collective(FileState& file, char const* call, Body body)
{
    try {
        return body();
    } catch (std::bad_alloc const&) {
    } catch (std::length_error const&) {  // a vector or string that is too long for any machine
    }
    file.lose(call);
}

}  // namespace

FileState::~FileState()
{
    if (!open || std::uncaught_exceptions() > 0) return;
    if (!forgotten_)
        std::fprintf(stderr, "tapioca: %s: %s, and neither was close()\n", path.c_str(),
                     forgotten_.error().text.c_str());
    else if (auto const left = never_closed(); !left.empty() && session->team().rank() == 0)
        core::warn(left);
}

std::string FileState::never_closed() const
{
    if (staging) return flush::never_closed(path);
    return subfiles ? subfiles->never_closed() : std::string();
}

core::Status FileState::forgotten() const
{
    auto status = forgotten_;
    for (auto const* const step : steps) core::keep_first(status, step->forgotten());
    return status;
}

void FileState::flush()
{
    collective(*this, "flush", [&] {
        require_open("flush");
        require_idle("flush");
        if (staging) raise_if("flush", staging->flush(false));
    });
}

void FileState::drain()
{
    collective(*this, "drain", [&] {
        require_open("drain");
        require_idle("drain");
        if (staging) raise_if("drain", staging->flush(false));
        if (subfiles) return raise_if("drain", subfiles->drain());
        if (set && set->has_tier())
            raise("drain",
                  {Errc::invalid_state, 0, -1,
                   mode == Mode::read
                       ? "the file was opened for reading: open it with Mode::update, or run `tapioca target drain`"
                       : "another handle or job is adding to these subfiles, and only that one can drain them"});
    });
}

void FileState::sync()
{
    collective(*this, "sync", [&] {
        require_open("sync");
        if (staging) {
            require_idle("sync");
            raise_if("sync", staging->flush(true));
        }
        if (subfiles) raise_if("sync", subfiles->sync());
        // One fsync covers what all processes of this node wrote, but only of a file that this process has open.
        core::Status local;
        if (session->team().node_rank() == 0 || set) {
            auto* const opened = target();
            local = opened ? opened->sync() : target_status();
            if (local && mode == Mode::create) local = target::sync_directory_of(place);
        }
        raise_if("sync", session->agreement().agree(local));
    });
}

std::uint64_t FileState::size()
{
    return collective(*this, "size", [&] {
        require_open("size");
        core::Status local;
        std::vector<std::uint64_t> bytes{0};
        if (session->team().rank() == 0) {
            auto* const opened = target();
            auto result = opened ? opened->size() : tl::unexpected(target_status().error());
            if (result)
                bytes[0] = *result;
            else
                local = tl::unexpected(result.error());
        }
        raise_if("size", session->agreement().agree(local));
        auto const in_file = session->team().sum(bytes)[0];
        if (!staging) return in_file;
        staging->advance();
        return std::max(in_file, static_cast<std::uint64_t>(staging->end()));
    });
}

void FileState::resize(std::int64_t size, bool exactly)
{
    collective(*this, "resize", [&] {
        require_open("resize");
        require_idle("resize");
        if (exactly && subfiles) return raise_if("resize", subfiles->resize(size));
        core::Status local;
        if (session->team().rank() == 0) {
            auto* const target = dynamic_cast<subfile::SetTarget*>(this->target());
            if (!target) {
                local = core::fail(Errc::io, "the subfiles cannot be opened");
            } else if (!exactly) {
                local = target->grow(size);
            } else if (auto const end = target->end_of_chunks(); !end) {
                local = tl::unexpected(end.error());
            } else if (*end > size) {
                local = core::fail(Errc::unsupported,
                                   "another handle or job is adding to these subfiles, so nothing can be cut off here");
            } else {
                local = target->resize_rest(size);
            }
        }
        raise_if("resize", session->agreement().agree(local));
    });
}

void FileState::close()
{
    collective(*this, "close", [&] { close_all(); });
}

void FileState::close_all()
{
    require_open("close");
    require_idle("close");
    auto staged = staging ? staging->close() : core::Status();
    if (staging && settings.options.report) account.more.emplace_back("stage", staging->figures());
    tell_what_was_learnt();
    staging.reset();
    auto const added = subfiles ? subfiles->close() : core::Status();
    auto local = lazy_target.close();
    core::keep_first(local, forgotten());
    open = false;
    session->closed();
    auto const agreed = session->agreement().agree(local);
    file::end_service(*this);
    // After an abandoned step, the ranks no longer make the same collective calls.
    bool const apart = session->several_nodes() && session->agreement().abandoned();
    if (settings.options.report && !apart) report::write({path, file::name(mode), settings, session->team()}, account);
    raise_if("close", staged);
    raise_if("close", added);
    raise_if("close", agreed);
}

namespace {

/// The factor by which a prediction was too high or too low.
double error_of(nlohmann::ordered_json const& step)
{
    auto const predicted = step["predicted_s"].get<double>();
    auto const measured = step["measured_s"].get<double>();
    return std::max(measured / predicted, predicted / measured);
}

}  // namespace

/// The file that TAPIOCA_LEARN names, if its value is a path.
std::optional<std::string> FileState::learnt_path() const
{
    auto const& wish = settings.options.learn;
    return wish && wish->find('/') != std::string::npos ? wish : std::nullopt;
}

void FileState::read_learnt()
{
    auto const kept_in = learnt_path();
    if (!kept_in) return;
    std::string text;
    if (session->team().rank() == 0) {
        auto found = machine::read_learnt(*kept_in);
        auto const parsed = found.and_then([](auto const& all) { return machine::Learnt::parse(all); });
        if (parsed) learnt_place_ = target::absolute(*kept_in);  // the program may change its working directory
        if (!parsed)
            core::warn(fmt::format("TAPIOCA_LEARN: {}: {}; nothing is read from it or written to it", *kept_in,
                                   parsed.error().text));
        else if (parsed->damaged() > 0)
            core::warn(fmt::format("TAPIOCA_LEARN: {}: {} damaged line{} left out", *kept_in, parsed->damaged(),
                                   parsed->damaged() == 1 ? " is" : "s are"));
        if (parsed) text = std::move(*found);
    }
    auto const all = session->agreement().broadcast(std::move(text));
    if (all) learnt = machine::Learnt::parse(*all).value_or(machine::Learnt());
}

void FileState::note_learnt(Choice const& choice)
{
    constexpr std::size_t most = 100;  // a program may declare any number of steps
    if (settings.options.report && predictions_.size() < most) choice.describe(predictions_);
    if (!learnt_place_.empty()) learnt_lines_ += choice.lines(learnt);
}

/// Adds predicted and measured seconds of every way that a step took to the account, and to the file for later jobs.
void FileState::tell_what_was_learnt()
{
    for (auto const* const step : steps) note_learnt(step->choice());
    if (!predictions_.empty()) account.more.emplace_back("predictions", predictions_.dump());
    nlohmann::ordered_json const* worst = nullptr;
    for (auto const& step : predictions_)
        if (step.contains("measured_s") && (!worst || error_of(step) > error_of(*worst))) worst = &step;
    if (worst)
        account.more.emplace_back(
            "largest_error",
            nlohmann::ordered_json{{"op", (*worst)["op"]}, {"way", (*worst)["planned"]}, {"factor", error_of(*worst)}}
                .dump());
    if (learnt_lines_.empty()) return;
    auto const added = machine::add_learnt(learnt_place_, learnt_lines_);
    if (!added) core::warn("TAPIOCA_LEARN: " + added.error().text);
}

std::shared_ptr<FileState> open_file(MPI_Comm comm, std::string const& path, Mode mode, Options const& options,
                                     MPI_Info info, OpenRequest const& opening)
{
    std::shared_ptr<FileState> state;
    try {
        state = {new FileState, [](FileState* file) {
                     if (!file->forked()) delete file;  // otherwise it belongs to the parent
                 }};
        state->path = path;
        state->place = target::absolute(path);
        state->mode = mode;
        state->recovering = opening.recovering;
        state->within_set = opening.within_set;
        state->may_become_set = opening.may_become_set;
        state->has_independent_accesses = opening.has_independent_accesses;
        file::open(*state, {comm, options, info, opening.kept, opening.session, opening.settings});
        if (opening.may_stage) state->staging = flush::Staging::open(*state, state->account);
        file::complete(*state);
        if (state->set && state->set->adds) {
            state->subfiles = std::make_unique<Subfiles>(*state);
            state->write_chunks = [file = state.get()](pattern::Variables const& variables, std::byte* data) {
                return write_chunks(*file, variables, data);
            };
            state->sync_chunks = [file = state.get()] { return file->subfiles->sync(); };
        }
        // What goes into a log that is durable at once needs a set that is, too.
        bool const lasting = state->settings.options.stage_sync.value_or(StageSync::sync) != StageSync::sync;
        if (state->staging && state->subfiles && lasting) state->raise_if("open", state->subfiles->sync());
        state->read_learnt();
    } catch (std::bad_alloc const&) {
        if (!state || !state->session)
            comm::end_job(fmt::format("rank {} is out of memory while the others wait for it in open() of {}",
                                      comm::rank_in(comm), path));
        state->lose("open");
    }
    return state;
}

namespace {

std::unique_ptr<StepState> plan_step(std::shared_ptr<FileState> const& shared, pattern::Variables const& variables)
{
    auto& file = *shared;
    file.require_open("declare");
    if (file.staging) file.staging->advance();
    report::Planning planning(file.account, file.session->team());
    auto plan = file.plan(variables);
    if (!plan) file.raise("declare", plan.error());
    file.require_same("declare", "the plan", plan::explain(*plan, {}));
    planning.done(*plan, variables, file.settings);
    bool const one_node = plan->job.nodes == 1;
    auto step = std::make_unique<StepState>(shared, variables, std::move(*plan));
    step->choice().learn(file.learning(), false);
    step->choice().prefer(file, file.learnt);
    if (one_node)
        file.raise_if("declare", file.session->agreement().agree({}));  // either all ranks have their plan or none has
    return step;
}

}  // namespace

std::unique_ptr<StepState> declare(std::shared_ptr<FileState> const& file, pattern::Variables const& variables)
{
    return collective(*file, "declare", [&] { return plan_step(file, variables); });
}

}  // namespace tapioca::declared
