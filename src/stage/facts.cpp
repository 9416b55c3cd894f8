// FileFacts: identifies a file, and tells whether it is still as the job left it.
#include <algorithm>
#include <ctime>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "machine/storage.hpp"
#include "stage/marker.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

namespace {

/// How long after its last noted time a job may have changed the file, since the time is noted just before the change.
/// If another machine serves the file, a host's data, and with it the file's time, may reach the server later.
constexpr std::uint64_t grace_ns = 1'000'000'000;
constexpr std::uint64_t remote_grace_ns = 30'000'000'000;

std::string to_text(std::uint64_t time_ns)
{
    auto const seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
    std::tm local = {};
    char text[64] = {};
    if (!::localtime_r(&seconds, &local) || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) == 0)
        return fmt::format("{} s after 1970", seconds);
    return text;
}

}  // namespace

core::Result<FileFacts> facts_of(int fd)
{
    struct statx found = {};
    auto const ns = [](statx_timestamp const& time) {
        return time.tv_sec < 0 ? 0 : static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    };
    if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
        return core::fail_errno(errno, "looking at the file");
    return FileFacts{found.stx_ino, found.stx_size, (found.stx_mask & STATX_BTIME) ? ns(found.stx_btime) : 0,
                     ns(found.stx_mtime), machine::reach_of(fd) != machine::Reach::one_host};
}

std::int64_t clock_ahead_ns(Descriptor const& file)
{
    auto const facts = facts_of(file.get());
    return facts ? static_cast<std::int64_t>(facts->changed_ns - target::now_ns()) : 0;
}

std::optional<std::string> changed_by_others(Marker const& marker, FileFacts const& now, std::uint64_t touched_ns)
{
    auto const& was = marker.noted.file;
    if (now.inode != was.inode || (now.born_ns != 0 && was.born_ns != 0 && now.born_ns != was.born_ns))
        return fmt::format(
            "another file has its name since, of inode {} made on {}, where the staged one had inode {}; it "
            "was last changed on {}",
            now.inode, to_text(now.born_ns), was.inode, to_text(now.changed_ns));
    auto const& others = marker.others;
    if (others.state == Noted::State::others && now.changed_ns > others.file.changed_ns)
        return fmt::format("a program that went past the log has changed it on {}", to_text(now.changed_ns));
    bool const recovering = marker.noted.state == Noted::State::recovering;
    if (!recovering && now.changed_ns == was.changed_ns && now.size == was.size) return {};
    // The job's own changes after the note.
    auto const last = recovering ? was.changed_ns : touched_ns;
    auto const until = last + (now.remote ? remote_grace_ns : grace_ns);
    if (last != 0 && (recovering || now.changed_ns >= was.changed_ns) && now.changed_ns <= until) return {};
    return fmt::format(
        "it was changed on {}, and has {} bytes; when it was last known to be changed by the job, on {}, it "
        "had {}",
        to_text(now.changed_ns), now.size, to_text(std::max(was.changed_ns, last)), was.size);
}

}  // namespace tapioca::stage
