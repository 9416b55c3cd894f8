#include "stage/leftovers.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "stage/marker.hpp"

namespace tapioca::stage {

namespace {

// This is longer than the time between making a directory and making the marker.
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

/// The two files of one log in a job's directory; either may be missing.
struct LogPair {
    bool meta = false;
    bool data = false;
};

/// Examines one job's directory, and holds locks on the files that it has examined, so that nobody appends to them.
class LeftoverJob {
public:
    explicit LeftoverJob(std::string const& directory)
        : directory_(directory), job_(std::filesystem::path(directory).filename().string())
    {
    }

    void remove_if_without_data()
    {
        if (!find_logs()) return;
        for (auto const& [name, pair] : logs_)
            if (!is_without_data({directory_, name}, pair)) return;
        for (auto const& [name, pair] : logs_)
            if (!remove_log({directory_, name})) return;
        remove_directory(directory_);
    }

private:
    /// Returns false if the directory contains anything other than logs.
    bool find_logs()
    {
        std::error_code error;
        for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
             entry.increment(error)) {
            auto const path = entry->path().filename();
            if (path == "full") continue;
            auto const name = path.stem().string();
            if (!name.starts_with("rank") && !name.starts_with("node")) return false;
            if (path.extension() == ".meta")
                logs_[name].meta = true;
            else if (path.extension() == ".data")
                logs_[name].data = true;
            else
                return false;
        }
        return !error;
    }

    /// True if no request was appended, if the log says that all were flushed, or if the file of entries is gone,
    /// without which the data cannot be used.
    bool is_without_data(LogPlace const& log, LogPair const& pair)
    {
        bool finished = !pair.meta;
        if (pair.meta) {
            auto const meta = first_page(log.meta(), meta_magic);
            if (!meta) return false;
            finished = meta->finished;
            if (!finished && meta->bytes > head_bytes) return false;
        }
        auto const data = pair.data ? first_page(log.data(), data_magic) : FirstPage();
        return data && (finished || data->bytes <= head_bytes);
    }

    struct FirstPage {
        std::uint64_t bytes = 0;  ///< size of the file
        bool finished = false;    ///< NAME.meta: everything was flushed
    };
    /// Nothing if the file does not belong to a dead job of this user and host, or if a marker may refer to it.
    std::optional<FirstPage> first_page(std::string const& path, char const* magic)
    {
        auto file = is_old_and_ours(path) ? open_private(path, true) : core::Result<Descriptor>(Descriptor());
        if (!file || !*file || !hold_for_certain(*file)) return {};
        auto const size = size_of(file->get(), path);
        if (!size) return {};
        std::vector<std::byte> first(std::min<std::uint64_t>(*size, head_bytes));
        if (!read_all(file->get(), 0, first)) return {};
        FirstPage page{*size, false};
        if (*size > head_bytes || !is_zero(first)) {
            auto const head = read_head(first, magic);
            if (!head || "tapioca-" + to_hex(head->identity) != job_ || !is_this_host(*head)) return {};
            if (may_have_marker(head->target)) return {};  // of any job
            page.finished = is_finished(*head, first);
        }
        held_.push_back(std::move(*file));
        return page;
    }

    std::string directory_;
    std::string job_;
    std::map<std::string, LogPair> logs_;
    std::vector<Descriptor> held_;
};

/// True at the first call for a directory.
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
    for (auto const& job : jobs)
        if (is_old_and_ours(job)) LeftoverJob(job).remove_if_without_data();
}

}  // namespace tapioca::stage
