// OpenFile: opening, views, hints, closing. What a collective call does is in collective.cpp.
#include "mpiio/open_file.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <fmt/core.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "api/c_face.hpp"
#include "comm/team.hpp"
#include "mpiio/datatype.hpp"
#include "mpiio/originals.hpp"
#include "settings/settings.hpp"

namespace tapioca::mpiio {

namespace {

/// The environment's settings; read anew when they have changed.
core::Result<settings::Settings> environment()
{
    static std::mutex mutex;
    static std::optional<settings::Pairs> last;
    static core::Result<settings::Settings> settings;
    std::lock_guard const lock(mutex);
    auto now = settings::read_environment();
    if (!last || *last != now) {
        settings = settings::resolve({}, {}, now);
        last = std::move(now);
    }
    return settings;
}

/// A name without ROMIO's prefix for plain files, or nothing for one with another file system's.
std::optional<std::string> without_prefix(std::string const& name)
{
    auto const colon = name.find(':');
    if (colon == std::string::npos || name.find('/') < colon) return name;
    if (name.starts_with("ufs:")) return name.substr(4);
    struct stat file = {};
    if (colon < 2 || ::stat(name.c_str(), &file) == 0) return name;
    return std::nullopt;
}

bool matches(std::string const& patterns, std::string const& path)
{
    auto const name = path.substr(path.rfind('/') + 1);
    std::size_t begin = 0;
    while (begin <= patterns.size()) {
        auto const end = std::min(patterns.find(':', begin), patterns.size());
        auto const pattern = patterns.substr(begin, end - begin);
        if (::fnmatch(pattern.c_str(), path.c_str(), 0) == 0 || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0)
            return true;
        begin = end + 1;
    }
    return false;
}

std::string absolute(std::string const& path)
{
    std::error_code error;
    auto const full = std::filesystem::absolute(path, error);
    return error ? path : full.string();
}

/// What the hint `tapioca` says, if it says no.
bool refused(MPI_Info info)
{
    if (info == MPI_INFO_NULL) return false;
    std::array<char, 16> value = {};
    int found = 0;
    PMPI_Info_get(info, "tapioca", static_cast<int>(value.size()) - 1, value.data(), &found);
    if (!found) return false;
    std::string_view const word(value.data());
    return word == "false" || word == "0" || word == "no" || word == "off" || word == "disable";
}

struct Files {
    std::shared_mutex mutex;
    std::unordered_map<MPI_File, std::shared_ptr<OpenFile>> map;
};

/// Never destroyed: programs end with files open.
Files& files()
{
    static auto& all = *new Files;
    return all;
}

}  // namespace

std::shared_ptr<OpenFile> find(MPI_File handle)
{
    auto& all = files();
    std::shared_lock const lock(all.mutex);
    auto const at = all.map.find(handle);
    return at == all.map.end() ? nullptr : at->second;
}

void enter(MPI_File handle, std::shared_ptr<OpenFile> file)
{
    auto& all = files();
    std::unique_lock const lock(all.mutex);
    all.map[handle] = std::move(file);
}

std::shared_ptr<OpenFile> remove(MPI_File handle)
{
    auto& all = files();
    std::unique_lock const lock(all.mutex);
    auto const at = all.map.find(handle);
    if (at == all.map.end()) return nullptr;
    auto file = std::move(at->second);
    all.map.erase(at);
    return file;
}

void warn(std::string const& text)
{
    static std::atomic<bool> told = false;
    if (told.exchange(true) || comm::world_rank() != 0) return;
    std::fprintf(stderr, "tapioca: %s; files are left to the MPI library\n", text.c_str());
}

std::string why_off(std::string const& name)
{
    auto const settings = environment();
    if (!settings) {
        warn(settings.error().text);
        return "a bad setting";
    }
    if (settings->options.off.value_or(false)) return "TAPIOCA_OFF";
    if (!without_prefix(name)) return "a prefix of another file system";
    auto const& patterns = settings->options.files;
    if (patterns && !matches(*patterns, absolute(*without_prefix(name)))) return "TAPIOCA_FILES";
    return {};
}

int class_of(Error const& error)
{
    switch (error.code()) {
    case Errc::ok: return MPI_SUCCESS;
    case Errc::invalid_argument: return MPI_ERR_ARG;
    case Errc::mismatch: return MPI_ERR_NOT_SAME;
    case Errc::not_found: return MPI_ERR_NO_SUCH_FILE;
    case Errc::permission: return error.sys_errno() == EROFS ? MPI_ERR_READ_ONLY : MPI_ERR_ACCESS;
    case Errc::is_directory: return MPI_ERR_BAD_FILE;
    case Errc::no_space: return error.sys_errno() == EDQUOT ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    case Errc::memory: return MPI_ERR_NO_MEM;
    case Errc::unsupported: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
    }
}

OpenFile::OpenFile(MPI_File handle, MPI_Comm comm, std::string const& name, int amode, MPI_Info info)
    : handle_(handle), path_(absolute(*without_prefix(name))), amode_(amode)
{
    if (info != MPI_INFO_NULL) PMPI_Info_dup(info, &hints_);
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    first_ = rank == 0;
    struct stat file = {};
    if (first_ && ::stat(path_.c_str(), &file) == 0) inode_ = file.st_ino;
    if (amode_ & MPI_MODE_SEQUENTIAL) off_ = "opened with MPI_MODE_SEQUENTIAL";
    if (refused(info)) off_ = "the hint tapioca=false";
    if (!off_.empty()) return;
    seat_ = Seat::of(comm);
    bench_ = seat_->take(comm);
}

OpenFile::~OpenFile()
{
    if (hints_ != MPI_INFO_NULL && comm::mpi_is_active()) PMPI_Info_free(&hints_);
}

void OpenFile::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    if (!off_.empty()) return;
    bad_view_ = "";
    if (!representation || std::strcmp(representation, "native") != 0) {
        bad_view_ = fmt::format("data representation {}", representation ? representation : "");
        return;
    }
    MPI_Count bytes = 0;
    PMPI_Type_size_x(etype, &bytes);
    etype_bytes_ = bytes;
    auto const tile = datatype_of(filetype);
    if (!tile) {
        bad_view_ = tile.error().text;
        return;
    }
    view_ = {displacement, tile->extent, tile->map};
    if (etype_bytes_ <= 0 || tile->map.bytes() == 0) bad_view_ = "a view of no bytes";
}

void OpenFile::set_info(MPI_Info info)
{
    if (!off_.empty() || info == MPI_INFO_NULL) return;
    bool changed = false;
    for (auto const& [name, value] : comm::pairs_of(info)) {
        if (!name.starts_with("tapioca")) continue;
        if (hints_ == MPI_INFO_NULL) PMPI_Info_create(&hints_);
        PMPI_Info_set(hints_, name.c_str(), value.c_str());
        changed = true;
    }
    if (changed) (void)close_engine();  // the next access opens it with the new hints
}

void OpenFile::add_hints(MPI_Info info) const
{
    PMPI_Info_set(info, "tapioca", off_.empty() ? "true" : "false");
    if (!off_.empty()) return;
    auto const settings = settings::resolve({}, comm::pairs_of(hints_), settings::read_environment());
    if (!settings) return;
    for (auto const& [name, value, origin] : settings->lines())
        PMPI_Info_set(info, ("tapioca_" + name).c_str(), value.c_str());
}

int OpenFile::close()
{
    split.reset();
    if (!off_.empty() && !file_) return MPI_SUCCESS;
    Within const within;
    // Files that were never accessed collectively have an account, too, if accounts are wanted.
    if (!file_) {
        auto const settings = hints_ == MPI_INFO_NULL
                                  ? environment()
                                  : settings::resolve({}, comm::pairs_of(hints_), settings::read_environment());
        if (!settings || !settings->options.report || !open_engine()) return MPI_SUCCESS;
    }
    return close_engine();
}

/// Collective.
int OpenFile::close_engine()
{
    if (!file_) return MPI_SUCCESS;
    account();
    int result = MPI_SUCCESS;
    try {
        file_->close();
    } catch (Error const& error) {  // some file systems tell only here that they could not keep the data
        result = class_of(error);
    }
    file_.reset();
    identified_ = false;
    return result;
}

void OpenFile::account()
{
    auto& state = api::Inside::of(*file_);
    if (!state.settings.options.report) return;
    std::vector<std::uint64_t> counts(calls_.all_served().begin(), calls_.all_served().end());
    auto const passed = calls_.all_passed();
    counts.insert(counts.end(), passed.begin(), passed.end());
    counts = state.pool->team().sum(std::move(counts));
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < calls; ++i) {
        if (counts[i] + counts[calls + i] == 0) continue;
        auto const call = static_cast<Call>(i);
        nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
        for (auto const& [why, count] : calls_.reasons(call)) reasons.push_back(why);
        rows.push_back({{"call", fmt::format("MPI_File_{}", name(call))},
                        {"served", counts[i]},
                        {"passed_on", counts[calls + i]},
                        {"why", reasons}});
    }
    state.account.more.emplace_back("calls", rows.dump());
}

}  // namespace tapioca::mpiio
