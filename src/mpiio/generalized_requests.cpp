#include "mpiio/generalized_requests.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/backoff.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/nonblocking.hpp"
#include "mpiio/return_code.hpp"

namespace tapioca::mpiio {

namespace {

using Ours = std::shared_ptr<PendingAccess>;

struct HandedOut {
    std::mutex mutex;
    std::unordered_map<MPI_Request, Ours> map;
};

/// Never destroyed, because programs may end with requests outstanding.
HandedOut& handed_out()
{
    static auto& all = *new HandedOut;
    return all;
}

std::atomic<int> outstanding = 0;

Ours find(MPI_Request request)
{
    if (request == MPI_REQUEST_NULL) return nullptr;
    auto& all = handed_out();
    std::lock_guard const lock(all.mutex);
    auto const at = all.map.find(request);
    return at == all.map.end() ? nullptr : at->second;
}

void forget(MPI_Request request)
{
    auto& all = handed_out();
    std::lock_guard const lock(all.mutex);
    if (all.map.erase(request) > 0) outstanding.fetch_sub(1, std::memory_order_relaxed);
}

// The state of each request is a separate shared pointer. MPI frees it before it reuses the handle.
extern "C" {
int tell_of_pending(void* state, MPI_Status* status)
{
    auto const& pending = **static_cast<Ours*>(state);
    fill(status, pending.outcome.bytes);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;  // errors are reported through the file's handler, which MPI does not know
}
int forget_pending(void* state)
{
    auto* const held = static_cast<Ours*>(state);
    forget((*held)->handle);
    delete held;
    return MPI_SUCCESS;
}
int go_on_with_pending(void* /*state*/, int /*complete*/)
{
    return MPI_SUCCESS;  // collective calls cannot be cancelled
}
}

/// Reports the error of an access that the program has completed, through its file's handler.
int tell(PendingAccess const& pending)
{
    auto const& outcome = pending.outcome;
    auto const its = pending.accesses.lock();  // null if the file is closed
    return outcome.told || !its ? outcome.error : raise(its->handle(), outcome.error);
}

/// Those requests of an array that are the library's, with their places.
std::vector<std::pair<int, Ours>> find_all(int count, MPI_Request const* requests)
{
    std::vector<std::pair<int, Ours>> ours;
    for (int i = 0; i < count; ++i)
        if (auto pending = find(requests[i])) ours.emplace_back(i, std::move(pending));
    return ours;
}

/// To be called after a function that completes several requests: `places` gives the place in `statuses` of each of the
/// library's requests, or -1.
template <class Place>
int tell_all(std::vector<std::pair<int, Ours>> const& ours, int code, int statuses_used, MPI_Status* statuses,
             Place place)
{
    bool failed = false;
    for (auto const& [index, pending] : ours) {
        auto const at = place(index);
        if (at < 0 || pending->outcome.error == MPI_SUCCESS) continue;
        if (!failed && code == MPI_SUCCESS && statuses != MPI_STATUSES_IGNORE)
            for (int i = 0; i < statuses_used; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
        failed = true;
        auto const error = tell(*pending);
        if (statuses != MPI_STATUSES_IGNORE) statuses[at].MPI_ERROR = error;
    }
    return failed ? MPI_ERR_IN_STATUS : code;
}

int as_it_is(int index)
{
    return index;
}

}  // namespace

bool any_handed_out()
{
    return outstanding.load(std::memory_order_relaxed) > 0;
}

void hand_out(Ours const& pending, MPI_Request* handle)
{
    *handle = MPI_REQUEST_NULL;
    if (PMPI_Grequest_start(tell_of_pending, forget_pending, go_on_with_pending, new Ours(pending), handle) !=
        MPI_SUCCESS)
        return;
    pending->handle = *handle;
    auto& all = handed_out();
    std::lock_guard const lock(all.mutex);
    all.map[*handle] = pending;
    outstanding.fetch_add(1, std::memory_order_relaxed);
}

void complete(PendingAccess& pending)
{
    PMPI_Grequest_complete(pending.handle);
    if (pending.freed) PMPI_Request_free(&pending.handle);
}

int wait(MPI_Request* request, MPI_Status* status)
{
    auto const ours = find(*request);
    if (ours) ours->finish();
    auto const code = mpi_functions().mpi.Wait(request, status);
    return ours && code == MPI_SUCCESS ? tell(*ours) : code;
}

int test(MPI_Request* request, int* flag, MPI_Status* status)
{
    auto const ours = find(*request);
    if (ours) ours->poll();
    auto const code = mpi_functions().mpi.Test(request, flag, status);
    return ours && code == MPI_SUCCESS && *flag ? tell(*ours) : code;
}

int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status)
{
    auto const ours = find_all(count, requests);
    for (auto const& [place, pending] : ours) pending->poll();
    auto const code = mpi_functions().mpi.Testany(count, requests, index, flag, status);
    if (code != MPI_SUCCESS || !*flag) return code;
    for (auto const& [place, pending] : ours)
        if (place == *index) return tell(*pending);
    return code;
}

int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status)
{
    if (find_all(count, requests).empty()) return mpi_functions().mpi.Waitany(count, requests, index, status);
    engine::Backoff backoff(false);
    for (int flag = 0;; backoff.pause()) {
        auto const code = testany(count, requests, index, &flag, status);
        if (code != MPI_SUCCESS || flag) return code;
    }
}

int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses)
{
    auto const ours = find_all(count, requests);
    for (auto const& [place, pending] : ours) pending->poll();
    auto const code = mpi_functions().mpi.Testall(count, requests, flag, statuses);
    return *flag ? tell_all(ours, code, count, statuses, as_it_is) : code;
}

int waitall(int count, MPI_Request* requests, MPI_Status* statuses)
{
    auto const ours = find_all(count, requests);
    for (auto const& [place, pending] : ours) pending->finish();
    auto const code = mpi_functions().mpi.Waitall(count, requests, statuses);
    return tell_all(ours, code, count, statuses, as_it_is);
}

int testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses)
{
    auto const ours = find_all(count, requests);
    for (auto const& [place, pending] : ours) pending->poll();
    auto const code = mpi_functions().mpi.Testsome(count, requests, completed, indices, statuses);
    auto const used = *completed == MPI_UNDEFINED ? 0 : *completed;
    return tell_all(ours, code, used, statuses, [&](int index) {
        for (int i = 0; i < used; ++i)
            if (indices[i] == index) return i;
        return -1;
    });
}

int waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses)
{
    if (find_all(count, requests).empty())
        return mpi_functions().mpi.Waitsome(count, requests, completed, indices, statuses);
    engine::Backoff backoff(false);
    for (;; backoff.pause()) {
        auto const code = testsome(count, requests, completed, indices, statuses);
        if (code != MPI_SUCCESS || *completed != 0) return code;
    }
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status)
{
    if (auto const ours = find(request)) ours->poll();
    return mpi_functions().mpi.Request_get_status(request, flag, status);
}

/// MPI forbids this for collective accesses. The access goes on, and the request is freed once it is complete.
int request_free(MPI_Request* request)
{
    auto const ours = find(*request);
    if (!ours) return mpi_functions().mpi.Request_free(request);
    std::lock_guard const lock(ours->mutex);
    if (ours->settled) return mpi_functions().mpi.Request_free(request);
    ours->freed = true;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

}  // namespace tapioca::mpiio
