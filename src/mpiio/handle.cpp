// OpenFile: opening, views, hints, closing. What a collective call does is in collective.cpp.
#include "mpiio/open_file.hpp"

#include <algorithm>
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
#include "api/report_file.hpp"
#include "comm/team.hpp"
#include "mpiio/datatype.hpp"
#include "mpiio/originals.hpp"
#include "settings/settings.hpp"
#include "stage/find.hpp"

namespace tapioca::mpiio {

namespace {

/// The environment's settings; read anew when they have changed.
core::Result<settings::Settings> environment()
{
    struct Last {
        std::mutex mutex;
        std::optional<settings::Pairs> pairs;
        core::Result<settings::Settings> settings;
    };
    static auto& last = *new Last;  // never destroyed: files may be closed while the program exits
    std::lock_guard const lock(last.mutex);
    auto now = settings::read_environment();
    if (!last.pairs || *last.pairs != now) {
        last.settings = settings::resolve({}, {}, now);
        last.pairs = std::move(now);
    }
    return last.settings;
}

bool exists(std::string const& path)
{
    struct stat file = {};
    return ::stat(path.c_str(), &file) == 0;
}

/// The path of the file that the MPI library has opened under this name. Some drop a prefix such as `ufs:`; one that
/// stands for another file system has no path.
std::optional<std::string> path_of(std::string const& name)
{
    auto const colon = name.find(':');
    if (colon == std::string::npos || name.find('/') < colon || exists(name)) return name;
    if (name.starts_with("ufs:")) return name.substr(4);
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

std::atomic<int> staged_files = 0;

/// Tells the staged files whether this process has other handles of them. @pre all is locked
void find_siblings(Files const& all)
{
    if (!any_staged()) return;
    for (auto const& [handle, file] : all.map)
        if (file->has_stage())
            file->has_siblings(std::any_of(all.map.begin(), all.map.end(), [&file = file](auto const& other) {
                return other.second != file && file->which() && other.second->which() == file->which();
            }));
}

extern "C" int tell_unclosed(MPI_Comm /*comm*/, int /*key*/, void* /*value*/, void* /*state*/)
{
    for (auto const& [handle, file] : files().map) file->tell_unclosed();
    return MPI_SUCCESS;
}

/// What is kept with MPI_COMM_SELF goes first in MPI_Finalize.
void await_finalize()
{
    static int const key = [] {
        int made = MPI_KEYVAL_INVALID;
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, tell_unclosed, &made, nullptr);
        PMPI_Comm_set_attr(MPI_COMM_SELF, made, nullptr);
        return made;
    }();
    (void)key;
}

}  // namespace

std::optional<Which> which(std::string const& name)
{
    auto const path = path_of(name);
    struct stat file = {};
    if (::stat((path ? *path : name.substr(name.find(':') + 1)).c_str(), &file) != 0) return std::nullopt;
    return Which{file.st_dev, file.st_ino};
}

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
    find_siblings(all);
}

std::shared_ptr<OpenFile> remove(MPI_File handle)
{
    auto& all = files();
    std::unique_lock const lock(all.mutex);
    auto const at = all.map.find(handle);
    if (at == all.map.end()) return nullptr;
    auto file = std::move(at->second);
    all.map.erase(at);
    find_siblings(all);
    return file;
}

bool any_staged()
{
    return staged_files.load(std::memory_order_relaxed) > 0;
}

std::vector<std::shared_ptr<OpenFile>> staged_handles_of(Which const& file, OpenFile const* but)
{
    std::vector<std::shared_ptr<OpenFile>> handles;
    if (!any_staged()) return handles;
    auto& all = files();
    std::shared_lock const lock(all.mutex);
    for (auto const& [handle, known] : all.map)
        if (known.get() != but && known->has_stage() && known->which() == file) handles.push_back(known);
    return handles;
}

void warn(std::string const& text)
{
    static std::atomic<bool> told = false;
    if (told.exchange(true) || comm::world_rank() != 0) return;
    bool const named = text.starts_with("tapioca: ");  // an Error's own words
    std::fprintf(stderr, "%s%s; files are left to the MPI library\n", named ? "" : "tapioca: ", text.c_str());
}

bool is_off()
{
    auto const settings = environment();
    if (!settings) warn(settings.error().text);
    return !settings || settings->options.off.value_or(false);
}

int class_of(Error const& error)
{
    return class_of(error.code(), error.sys_errno());
}

int class_of(Errc code, int sys_errno)
{
    switch (code) {
    case Errc::ok: return MPI_SUCCESS;
    case Errc::invalid_argument: return MPI_ERR_ARG;
    case Errc::mismatch: return MPI_ERR_NOT_SAME;
    case Errc::not_found: return MPI_ERR_NO_SUCH_FILE;
    case Errc::permission: return sys_errno == EROFS ? MPI_ERR_READ_ONLY : MPI_ERR_ACCESS;
    case Errc::is_directory: return MPI_ERR_BAD_FILE;
    case Errc::no_space: return sys_errno == EDQUOT ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    case Errc::memory: return MPI_ERR_NO_MEM;
    case Errc::unsupported: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
    }
}

OpenFile::OpenFile(MPI_File handle, MPI_Comm comm, std::string const& name, int amode, MPI_Info info)
    : handle_(handle), amode_(amode)
{
    if (info != MPI_INFO_NULL) PMPI_Info_dup(info, &hints_);
    PMPI_Comm_rank(comm, &rank_);
    first_ = rank_ == 0;
    PMPI_Comm_size(comm, &ranks_);
    alone_ = ranks_ == 1;
    auto const path = path_of(name);
    path_ = absolute(path.value_or(name));
    which_ = mpiio::which(path ? path_ : name);
    auto const settings = environment();
    if (settings && settings->options.report) (void)api::report_place(*settings->options.report);
    auto const patterns = settings ? settings->options.files : std::nullopt;
    if (!path) refusal_ = "a prefix of another file system";
    if (patterns && !matches(*patterns, path_)) refusal_ = "TAPIOCA_FILES";
    if (amode_ & MPI_MODE_SEQUENTIAL) refusal_ = "opened with MPI_MODE_SEQUENTIAL";
    if (refused(info)) refusal_ = "the hint tapioca=false";
    watch("open");
    channels_ = Channels::of(comm);
    channels_->keep(watchdog_);
    channel_ = channels_->take(comm);
}

/// This rank may wait for others in `call`, of MPI_File_...
void OpenFile::watch(char const* call)
{
    if (file_) return api::Inside::of(*file_).watch(call);
    auto const settings = environment();
    auto const seconds = settings ? settings->options.timeout : std::nullopt;
    watchdog_ = comm::watch({seconds.value_or(settings::default_timeout), rank_, ranks_, call, &path_});
}

void OpenFile::start()
{
    bool const changes = (amode_ & MPI_MODE_RDONLY) == 0;
    bool const ours = which_ && !staged_handles_of(*which_, this).empty();
    if (first_ && changes && !ours && stage::has_marker(path_) && !stage::clear_flushed(path_))
        go_past_marker("tapioca: " + stage::what_to_do(path_));
    auto const settings = environment();
    if (!settings || !settings->options.stage) return;
    Within const within;
    if (!alone_) (void)hand_over(Direction::read);  // the ranks of a second handle find all that they have staged
    if (!agree_to_serve()) return;
    if (may_stage())
        (void)open_engine();
    else
        tell_unstaged();
}

/// A log of the file is there. If that is a dead job's, and not that of a program that is running, which is nobody's
/// concern, it is noted that this program may change the file. `what` says what to do about it. Local.
void OpenFile::go_past_marker(std::string const& what) const
{
    if (stage::is_staged_now(path_)) return;
    bool const changes = (amode_ & MPI_MODE_RDONLY) == 0;
    if (changes && first_) stage::let_others_in(path_);
    warn(what + (changes ? "; do so before a program changes the file: what this one writes now is kept by `discard`, "
                           "and `recover` refuses to write older data over it"
                         : ""));
}

/// That the file goes without the stage that the environment asks for, once, if only its ranks are in the way. Local.
void OpenFile::tell_unstaged() const
{
    static std::atomic<bool> told = false;
    bool const by_mode = (amode_ & never_staged) != 0;
    // Of files that ranks open each for itself there may be as many as there are ranks.
    if (by_mode || !first_ || (alone_ && comm::world_rank() != 0) || told.exchange(true)) return;
    std::fprintf(
        stderr,
        "tapioca: %s: is not staged: it was opened by %d of the job's %d ranks, and the others would not know of "
        "the log if they opened it, too; where they do not, the hint tapioca_stage in MPI_File_open has it "
        "staged\n",
        path_.c_str(), ranks_, comm::size_of(MPI_COMM_WORLD));
}

/// After the engine has opened it. Local.
void OpenFile::note_stage()
{
    if (!logged().staging) return;
    has_stage_ = true;
    ++staged_files;
    await_finalize();
    auto& all = files();
    std::unique_lock const lock(all.mutex);
    find_siblings(all);
}

OpenFile::~OpenFile()
{
    if (hints_ != MPI_INFO_NULL && comm::mpi_is_active()) PMPI_Info_free(&hints_);
}

void OpenFile::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    bad_view_ = "";
    try {
        decode_view(displacement, etype, filetype, representation);
    } catch (std::exception const& error) {
        bad_view_ = error.what();
    }
}

void OpenFile::decode_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                           char const* representation)
{
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
    reopen_ = reopen_ || changed;  // at the next access
}

void OpenFile::add_hints(MPI_Info info) const
{
    bool const serves = off_.empty() && refusal_.empty();
    PMPI_Info_set(info, "tapioca", serves ? "true" : "false");
    if (!serves) return;
    auto const settings = settings::resolve({}, comm::pairs_of(hints_), settings::read_environment());
    if (!settings) return;
    // Programs open other handles with this. The stage would be their wish there, even if it is the environment's.
    for (auto const& [name, value, origin] : settings->lines())
        if (name != "stage" || has_hint("tapioca_stage"))
            PMPI_Info_set(info, ("tapioca_" + name).c_str(), value.c_str());
}

int OpenFile::close()
{
    split.reset();
    Within const within;
    if (file_) {
        watch("close");
        close_engine();
        return late_;
    }
    // One that was never accessed collectively, or left to the MPI library, has rank 0's account.
    auto const settings = hints_ == MPI_INFO_NULL
                              ? environment()
                              : settings::resolve({}, comm::pairs_of(hints_), settings::read_environment());
    if (!first_ || !settings || !settings->options.report) return late_;
    nlohmann::ordered_json account;
    account["path"] = path_;
    if (!off_.empty()) account["passed_on"] = off_;
    account["calls_of"] = "rank 0";
    account["calls"] = nlohmann::ordered_json::parse(describe_calls(calls_.counts()));
    api::add_to_report(*settings->options.report, account.dump());
    return late_;
}

/// Collective. Who uses the log through another handle waits for its end, and then finds everything in the file.
void OpenFile::close_engine()
{
    if (!file_) return;
    account();
    std::lock_guard const lock(log_);
    try {
        file_->close();
    } catch (Error const& error) {  // some file systems tell only here that they could not keep the data
        if (late_ == MPI_SUCCESS) late_ = class_of(error);
        if (has_stage()) tell(error.what());
    }
    if (has_stage_.exchange(false)) --staged_files;
    file_.reset();
    identified_ = false;
}

std::string OpenFile::describe_calls(std::vector<std::uint64_t> const& counts) const
{
    auto result = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < calls; ++i) {
        if (counts[i] + counts[calls + i] == 0) continue;
        auto const call = static_cast<Call>(i);
        auto reasons = nlohmann::ordered_json::array();
        for (auto const& [why, count] : calls_.reasons(call)) reasons.push_back(why);
        result.push_back({{"call", fmt::format("MPI_File_{}", name(call))},
                          {"served", counts[i]},
                          {"passed_on", counts[calls + i]},
                          {"why", reasons}});
    }
    return result.dump();
}

/// Collective.
void OpenFile::account()
{
    auto& state = api::Inside::of(*file_);
    if (!state.settings.options.report) return;
    state.account.more.emplace_back("calls", describe_calls(state.pool->team().sum(calls_.counts())));
    calls_.clear();
}

}  // namespace tapioca::mpiio
