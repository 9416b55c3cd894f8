#include "subfile_look.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subfile/coverage.hpp"
#include "subfile/join.hpp"

namespace tools {

namespace {

namespace subfile = tapioca::subfile;
using tapioca::Errc;

/// Dead bytes are counted as long as that takes no longer than a second or so.
constexpr std::uint64_t most_pieces = 2'000'000;

char const* name_of(subfile::SetState state)
{
    switch (state) {
    case subfile::SetState::live: return "live";
    case subfile::SetState::interrupted: return "interrupted";
    case subfile::SetState::complete: break;
    }
    return "complete";
}

/// When the job that writes the set began.
std::uint64_t begin_of_writing(OpenSet const& set)
{
    struct stat note = {};
    if (::fstatat(set.opened.get(), subfile::writer_name, &note, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    return static_cast<std::uint64_t>(std::max<time_t>(note.st_mtim.tv_sec, 0));
}

void fill_in(SetFacts& facts, OpenSet const& set)
{
    auto const& map = set.contents->map();
    auto const& head = set.contents->head();
    auto const& job = set.contents->writer();
    facts.state = name_of(set.contents->state());
    facts.size = set.size();
    facts.subfiles = map.subfiles().size();
    facts.tier = set.stub.tier;
    for (auto const& [number, bytes] : map.subfiles())
        if (!facts.tier.empty() &&
            ::faccessat(set.opened.get(), subfile::subfile_name(number).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            ++facts.on_tiers;
    facts.chunks = map.chunks();
    facts.data_bytes = map.data_bytes();
    facts.dead_bytes = subfile::dead_bytes(map, most_pieces);
    if (set.contents->state() == subfile::SetState::complete) {
        facts.layout = head.layout;
        facts.host = head.host;
        facts.ranks = head.ranks;
        facts.nodes = head.nodes;
        facts.written = head.written;
    } else if (set.writer_counts()) {
        facts.layout = job.layout;
        facts.host = job.host;
        facts.ranks = job.ranks;
        facts.nodes = job.nodes;
        facts.process = job.process;
        facts.written = begin_of_writing(set);
    }
}

}  // namespace

std::int64_t OpenSet::size() const
{
    struct stat rest = {};
    bool const has_rest = ::fstatat(opened.get(), subfile::rest_name, &rest, AT_SYMLINK_NOFOLLOW) == 0;
    return std::max<std::int64_t>(contents->map().end(), has_rest && S_ISREG(rest.st_mode) ? rest.st_size : 0);
}

tapioca::core::Result<OpenSet> open_set(std::string const& given)
{
    namespace core = tapioca::core;
    OpenSet set;
    set.path = subfile::resolved(given);
    struct stat file = {};
    if (::stat(set.path.c_str(), &file) != 0 || ::access(set.path.c_str(), R_OK) != 0)
        return core::fail(Errc::setting, given + ": " + std::strerror(errno));
    auto const stub = subfile::find_stub(set.path);
    if (!stub) return core::fail(stub.error().code, given + ": " + stub.error().text);
    core::Descriptor const plain(::open(set.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!*stub && plain && S_ISREG(file.st_mode))
        if (auto status = subfile::check_remains(set.path, plain.get(), static_cast<std::uint64_t>(file.st_size));
            !status)
            return core::fail(status.error().code, given + ": " + status.error().text);
    if (!*stub)
        return core::fail(Errc::setting,
                          given + (S_ISDIR(file.st_mode) ? " is a directory: name the file that consists of subfiles"
                                                         : " does not consist of subfiles"));
    set.stub = **stub;
    set.directory = subfile::beside(set.path, set.stub.directory);
    auto directory = subfile::open_directory(set.directory);
    if (!directory) return core::fail(directory.error().code, given + ": " + directory.error().text);
    set.opened = std::move(*directory);
    set.contents = std::make_unique<subfile::SetContents>(set.opened.get(), set.stub.identity);
    try {
        if (auto status = set.contents->refresh(); !status)
            return core::fail(status.error().code, set.directory + ": " + status.error().text);
    } catch (std::bad_alloc const&) {
        return core::fail(Errc::memory, set.directory + ": there is not enough memory for what its index says");
    }
    return set;
}

SetFacts look_at_set(std::string const& path)
{
    SetFacts facts;
    facts.path = path;
    auto const set = open_set(path);
    if (set)
        fill_in(facts, *set);
    else
        facts.damage = set.error().text;
    if (!set) facts.state = "damaged";
    return facts;
}

std::string to_text(subfile::WriterNote const& job)
{
    return fmt::format("process {} on host {}", job.process, job.host);
}

}  // namespace tools
