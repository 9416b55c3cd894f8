#include "mpiio/handle_table.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "mpiio/handle.hpp"

namespace tapioca::mpiio {

namespace {

struct OpenHandles {
    std::shared_mutex mutex;
    std::unordered_map<MPI_File, std::shared_ptr<Handle>> map;
};

/// Never destroyed, because programs may end with files open.
OpenHandles& table()
{
    static auto& all = *new OpenHandles;
    return all;
}

std::atomic<int> logs = 0;

/// Tells the logs whether this process has other handles of their files. @pre all is locked
void find_siblings(OpenHandles const& all)
{
    if (!any_logs()) return;
    for (auto const& [file, handle] : all.map)
        if (handle->has_log())
            handle->log().has_siblings(std::any_of(all.map.begin(), all.map.end(), [&its = handle](auto const& entry) {
                auto const& other = entry.second;
                return other != its && its->opened().which && other->opened().which == its->opened().which;
            }));
}

extern "C" int leave_unclosed(MPI_Comm /*comm*/, int /*key*/, void* /*value*/, void* /*state*/)
{
    for (auto const& [file, handle] : table().map) {
        handle->tell_unclosed();
        handle->abandon_pending();
    }
    return MPI_SUCCESS;
}

}  // namespace

/// Attributes of MPI_COMM_SELF are deleted first in MPI_Finalize.
void await_finalize()
{
    static int const key = [] {
        int made = MPI_KEYVAL_INVALID;
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_unclosed, &made, nullptr);
        PMPI_Comm_set_attr(MPI_COMM_SELF, made, nullptr);
        return made;
    }();
    (void)key;
}

std::shared_ptr<Handle> find(MPI_File file)
{
    auto& all = table();
    std::shared_lock const lock(all.mutex);
    auto const at = all.map.find(file);
    return at == all.map.end() ? nullptr : at->second;
}

void enter(MPI_File file, std::shared_ptr<Handle> handle)
{
    auto& all = table();
    std::unique_lock const lock(all.mutex);
    all.map[file] = std::move(handle);
    find_siblings(all);
}

std::shared_ptr<Handle> remove(MPI_File file)
{
    auto& all = table();
    std::unique_lock const lock(all.mutex);
    auto const at = all.map.find(file);
    if (at == all.map.end()) return nullptr;
    auto handle = std::move(at->second);
    all.map.erase(at);
    find_siblings(all);
    return handle;
}

bool has_other_handles(OpenArguments const& opened)
{
    auto& all = table();
    std::shared_lock const lock(all.mutex);
    return std::any_of(all.map.begin(), all.map.end(), [&](auto const& entry) {
        auto const& other = entry.second->opened();
        return &other != &opened && opened.which && other.which == opened.which;
    });
}

void count_log()
{
    ++logs;
    await_finalize();
    auto& all = table();
    std::unique_lock const lock(all.mutex);
    find_siblings(all);
}

void discount_log()
{
    --logs;
}

bool any_logs()
{
    return logs.load(std::memory_order_relaxed) > 0;
}

std::vector<std::shared_ptr<Staged>> logs_of(Which const& which, OpenArguments const* but)
{
    std::vector<std::shared_ptr<Staged>> found;
    if (!any_logs()) return found;
    auto& all = table();
    std::shared_lock const lock(all.mutex);
    for (auto const& [file, handle] : all.map)
        if (&handle->opened() != but && handle->has_log() && handle->opened().which == which)
            found.emplace_back(handle, &handle->log());
    return found;
}

}  // namespace tapioca::mpiio
