// tapioca target drain: brings what this node has of a set to the set's directory. Several processes on a node, or one
// on each of several nodes, need not know of each other.
#include <chrono>
#include <cstdio>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "recover/progress.hpp"
#include "subfile/drain.hpp"
#include "target_verbs.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace subfile = tapioca::subfile;
using namespace std::chrono_literals;

/// While another process drains the last subfiles of this node.
constexpr auto wait_for_others = 200ms;
/// While another process clears a directory of the same set.
constexpr auto wait_for_lock = 20ms;

/// Drains one set's subfiles on this node.
class SetDrain {
public:
    SetDrain(OpenSet const& set, bool live) : set_(set), end_(set.contents->next_subfile()), progress_(true, live) {}

    /// Returns what is where when this node has nothing left.
    core::Result<SetOnTier> run()
    {
        auto found = look();
        if (!found) return found;
        if (auto status = check_no_copy(set_, *found); !status) return tl::unexpected(status.error());
        place_ = found->place;
        if (found->here.empty()) return clear(std::move(*found));
        std::uint64_t bytes = 0;
        for (auto const number : found->here) bytes += size_of(number);
        progress_.begin(fmt::format("draining {}", core::printable(set_.path)), bytes);
        while (!found->here.empty()) {
            auto const some = drain_each(found->here);
            if (!some) return tl::unexpected(some.error());
            if (!*some) std::this_thread::sleep_for(wait_for_others);
            found = look();
            if (!found) return found;
        }
        progress_.end();
        return clear(std::move(*found));
    }
    [[nodiscard]] std::size_t subfiles() const { return subfiles_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    /// A job that has begun since this drain did writes into subfiles with higher numbers: they are not looked at. Nor
    /// are those that have no data of the set.
    [[nodiscard]] core::Result<SetOnTier> look() const
    {
        auto found = look_for_subfiles(set_);
        auto const& known = set_.contents->map().subfiles();
        if (found)
            std::erase_if(found->here, [&](std::uint32_t number) { return number >= end_ || !known.contains(number); });
        return found;
    }
    /// Removes the directory on the tier, and subfiles there that killed jobs had begun, of which no index knows; under
    /// the lock of the set, so that they are not those of a job that begins. If one has begun, the directory stays.
    core::Result<SetOnTier> clear(SetOnTier found)
    {
        if (found.place.empty() || ::access(found.place.c_str(), F_OK) != 0) return found;
        auto const lock = take_lock();
        if (!lock) return tl::unexpected(lock.error());
        if (!*lock) return found;
        auto const all = look_for_subfiles(set_);
        auto status = all ? core::Status() : tl::unexpected(all.error());
        std::vector<std::uint32_t> unknown;
        auto const& map = set_.contents->map();
        for (auto const number : all ? all->here : std::vector<std::uint32_t>())
            if (!map.subfiles().contains(number)) unknown.push_back(number);
        if (status) status = subfile::remove_from_tier(found.place, unknown);
        subfile::give_back_lock(set_.opened.get(), *set_.contents);  // then the set is as it was
        if (!status) return tl::unexpected(status.error());
        return found;
    }
    /// Nothing if a job has it. Drains on other nodes have it for a moment.
    core::Result<std::optional<core::Descriptor>> take_lock()
    {
        constexpr auto most_attempts = 100;
        for (int attempt = 1;; ++attempt) {
            auto lock = subfile::take_lock(set_.opened.get(), *set_.contents, set_.stub.identity,
                                           {1, 1, 0, "drain", set_.path.substr(set_.path.rfind('/') + 1)});
            if (!lock || *lock || attempt == most_attempts) return lock;
            std::this_thread::sleep_for(wait_for_lock);
            if (auto status = set_.contents->refresh(); !status) return tl::unexpected(status.error());
            if (set_.contents->writer().groups > 0 && set_.contents->state() == subfile::SetState::live) return lock;
        }
    }
    [[nodiscard]] std::uint64_t size_of(std::uint32_t number) const
    {
        auto const file = subfile::open_on_tier(place_, number, O_RDONLY);
        auto const size = file ? core::size_of(file->get(), place_) : core::Result<std::uint64_t>(0);
        return size.value_or(0);
    }
    /// Returns whether there was something that no other process is draining.
    core::Result<bool> drain_each(std::vector<std::uint32_t> const& numbers)
    {
        bool some = false;
        for (auto const number : numbers) {
            auto const bytes = size_of(number);
            auto const drained =
                subfile::drain_subfile({set_.directory, place_, set_.stub.identity, number, subfile::EmptyPlace::kept},
                                       subfile::Drain::Writer::ended,
                                       [&](std::int64_t copied) { progress_.add(static_cast<std::uint64_t>(copied)); });
            if (!drained) return tl::unexpected(drained.error());
            some = some || *drained;
            subfiles_ += *drained ? 1 : 0;
            bytes_ += *drained ? bytes : 0;
        }
        return some;
    }

    OpenSet const& set_;
    std::uint32_t end_;  ///< one past the last subfile of the jobs that have ended
    recover::Progress progress_;
    std::string place_;
    std::size_t subfiles_ = 0;
    std::uint64_t bytes_ = 0;
};

/// Why a set cannot be drained now.
core::Status check_drainable(OpenSet const& set)
{
    auto const state = set.contents->state();
    // Without groups, it is another drain that clears up, or a join of what was drained already.
    if (state == subfile::SetState::live && set.contents->writer().groups > 0)
        return core::fail(tapioca::Errc::invalid_state,
                          fmt::format("{}: {} is writing it: drain it when the job has ended", set.path,
                                      to_text(set.contents->writer())));
    if (state == subfile::SetState::interrupted)
        return core::fail(tapioca::Errc::invalid_state,
                          fmt::format("{}: {} has ended without closing the file: first `tapioca subfile recover {}`",
                                      set.path, to_text(set.contents->writer()), core::shell_word(set.path)));
    return {};
}

void tell_drained(OpenSet const& set, SetDrain const& drain, SetOnTier const& now, double seconds)
{
    auto const path = core::printable(set.path);
    auto const done = drain.subfiles() == 0
                          ? std::string("nothing to drain on this node")
                          : fmt::format("drained {} subfile{}, {}, in {:.1f} s", drain.subfiles(),
                                        drain.subfiles() == 1 ? "" : "s", core::format_bytes(drain.bytes()), seconds);
    auto const elsewhere = now.count(SubfilePlace::elsewhere);
    auto const missing = now.count(SubfilePlace::missing);
    if (missing > 0)
        fmt::print(
            "{}: {}; {} of {} subfiles are missing, though they were written here: `tapioca subfile verify {}` "
            "lists what cannot be read\n",
            path, done, missing, now.subfiles.size(), core::shell_word(set.path));
    else if (elsewhere > 0)
        fmt::print("{}: {}; {} of {} subfiles are still on {}: drain it there, too\n", path, done, elsewhere,
                   now.subfiles.size(), core::printable(now.other_hosts()));
    else
        fmt::print("{}: {}; everything is in its directory\n", path, done);
}

int drain_file(std::string const& path, bool live)
{
    auto const set = open_set(path);
    if (!set) return fail_sub("target drain", set.error().text);
    if (auto const status = check_drainable(*set); !status) return fail_sub("target drain", status.error().text, 1);
    auto const start = std::chrono::steady_clock::now();
    SetDrain drain(*set, live);
    auto const now = drain.run();
    if (!now && live) fmt::print(stderr, "\n");
    if (!now && now.error().code == tapioca::Errc::no_space)
        return fail_sub(
            "target drain",
            now.error().text + ": nothing is lost. With more room, the same command goes on where it stopped", 1);
    if (!now) return fail_sub("target drain", now.error().text, 1);
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - start;
    tell_drained(*set, drain, *now, taken.count());
    return now->count(SubfilePlace::missing) > 0 ? 1 : 0;
}

/// Drains all files that have data on a tier of this node. One that cannot be drained does not stop the others.
int drain_all(std::string const& tier, bool live)
{
    auto const directory = directory_of_tier(tier);
    if (!directory) return fail_sub("target drain", directory.error().text);
    auto const catalogue = subfile::read_catalogue(*directory);
    if (!catalogue) return fail_sub("target drain", catalogue.error().text);
    int status = 0;
    for (auto const& place : catalogue->places) {
        auto const owner = find_owner(place);
        if (owner.belonging == Belonging::file) {
            status = std::max(status, drain_file(owner.path, live));
            continue;
        }
        fmt::print("{}: left alone: {}\n", core::printable(owner.path),
                   owner.belonging == Belonging::gone    ? "the file is gone, or was moved"
                   : owner.belonging == Belonging::other ? "the file is another one now"
                                                         : core::printable(owner.reason));
        status = 1;
    }
    for (auto const& line : catalogue->damaged) status = fail_sub("target drain", line, 1);
    if (catalogue->places.empty() && status == 0) fmt::print("nothing to drain on this node\n");
    return status == 0 ? 0 : 1;
}

}  // namespace

int drain_target(Words const& words)
{
    std::string path;
    std::string tier;
    bool live = ::isatty(STDERR_FILENO) != 0;
    CLI::App app(
        "Brings what this node has of a file to the file system. It may be killed: the next drain goes on. Run it on "
        "every "
        "node that wrote the file; several processes on a node share the work.");
    auto* const file = app.add_option("FILE", path, "the file");
    auto* const all = app.add_option("--all", tier, "of all files that have data on this tier, such as ssd:/scratch");
    app.add_flag("--live", live, "redraw one line of progress instead of printing many");
    file->excludes(all);
    if (auto const status = parse_words(app, "target drain", words)) return *status;
    if (path.empty() && tier.empty()) return fail_sub("target drain", "name a file, or a tier with --all");
    return tier.empty() ? drain_file(path, live) : drain_all(tier, live);
}

}  // namespace tools
