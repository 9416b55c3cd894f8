#include "stage/leftovers.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "stage/marker.hpp"

namespace tapioca::stage {

namespace {

// Longer than it takes from a directory's making to the marker.
constexpr std::time_t least_age_s = 60;

bool is_old_and_ours(std::string const& path)
{
    struct stat found = {};
    return ::lstat(path.c_str(), &found) == 0 && found.st_uid == ::geteuid() &&
           found.st_mtime < std::time(nullptr) - least_age_s;
}

bool is_this_host(Head const& head)
{
    char name[sizeof head.host] = {};
    (void)::gethostname(name, sizeof name - 1);
    return std::string_view(name) == std::string_view(head.host);
}

/// Whether a file of a log has no request. Locked from then on, so that nobody adds one.
bool is_empty(std::string const& path, std::string const& job, std::vector<Descriptor>& held)
{
    auto file = is_old_and_ours(path) ? open_private(path, true) : core::Result<Descriptor>(Descriptor());
    if (!file || !*file || !hold_for_certain(*file)) return false;
    auto const size = size_of(file->get(), path);
    if (!size || *size > head_bytes) return false;
    std::vector<std::byte> first(*size);
    if (!read_all(file->get(), 0, first)) return false;
    bool const blank = std::all_of(first.begin(), first.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!blank && path.ends_with(".meta")) {
        auto const head = read_head(first, meta_magic);
        if (!head || "tapioca-" + to_hex(head->identity) != job || !is_this_host(*head)) return false;
        if (has_marker(head->target)) return false;  // of whichever job
    }
    held.push_back(std::move(*file));
    return true;
}

void remove_if_empty(std::string const& directory)
{
    namespace fs = std::filesystem;
    if (!is_old_and_ours(directory)) return;
    auto const job = fs::path(directory).filename().string();
    std::vector<Descriptor> held;
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        if (name == "full") continue;
        bool const known = (name.starts_with("rank") || name.starts_with("node")) &&
                           (name.ends_with(".meta") || name.ends_with(".data"));
        if (!known || !is_empty(entry->path().string(), job, held)) return;
        files.push_back(entry->path().string());
    }
    if (error) return;
    for (auto const& file : files)
        if (!remove_private(file)) return;
    remove_directory(directory);
}

/// True the first time.
bool is_first_look(std::string const& directory)
{
    static std::mutex mutex;
    static std::set<std::string> known;
    std::lock_guard const lock(mutex);
    return known.insert(directory).second;
}

}  // namespace

void remove_empty_jobs(std::string const& parent)
{
    if (!is_first_look(parent)) return;
    std::vector<std::string> jobs;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
        if (is_job_directory(entry->path().string())) jobs.push_back(entry->path().string());
    for (auto const& job : jobs) remove_if_empty(job);
}

}  // namespace tapioca::stage
