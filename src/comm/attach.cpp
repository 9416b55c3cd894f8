// Keeps objects with communicators, as MPI attributes. There are no globals, and the objects are dropped when MPI says
// so.
#include <algorithm>
#include <mutex>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

namespace {

using Held = std::shared_ptr<void>;

/// Kept with MPI_COMM_SELF, whose attributes are deleted first in MPI_Finalize, while MPI still works: the
/// communicators to which objects are attached, and under which keys.
struct Registry {
    struct Holder {
        MPI_Comm comm;
        int key;
        bool operator==(Holder const&) const = default;
    };
    std::mutex mutex;  ///< threads may open files on different communicators at the same time
    std::vector<Holder> holders;
    std::vector<Remaining> windows;  ///< oldest first
};

int drop_object(MPI_Comm comm, int key, void* value, void* /*extra*/);
int drop_registry(MPI_Comm comm, int key, void* value, void* extra);

int make_key(MPI_Comm_delete_attr_function* drop)
{
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, nullptr);
    return key;
}

int registry_key()
{
    static int const key = make_key(drop_registry);
    return key;
}

template <class T>
T* attribute(MPI_Comm comm, int key)
{
    T* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &found);
    return found ? value : nullptr;
}

int drop_object(MPI_Comm comm, int key, void* value, void* /*extra*/)
{
    if (auto* const registry = attribute<Registry>(MPI_COMM_SELF, registry_key())) {
        std::lock_guard const lock(registry->mutex);
        std::erase(registry->holders, Registry::Holder{comm, key});
    }
    delete static_cast<Held*>(value);
    return MPI_SUCCESS;
}

int drop_registry(MPI_Comm /*comm*/, int /*key*/, void* value, void* /*extra*/)
{
    auto* const registry = static_cast<Registry*>(value);
    // All ranks made their windows in the same order, in which they can be freed without a circular wait.
    for (auto& [window, comm, torn] : registry->windows) {
        Waiting const waiting("the other ranks to give their window back");
        int left = torn ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &left, 1, MPI_INT, MPI_MAX, comm);
        if (left == 0) MPI_Win_free(&window);
        MPI_Comm_free(&comm);
    }
    // An object that is dropped here finds no registry, or finds this one and only shortens its list. The last object
    // is dropped first, because it may need earlier ones.
    while (!registry->holders.empty()) {
        auto const [comm, key] = registry->holders.back();
        registry->holders.pop_back();
        MPI_Comm_delete_attr(comm, key);
    }
    delete registry;
    Watchdog::dismiss();  // last, because dropping an object may wait for other ranks
    return MPI_SUCCESS;
}

/// Made at the first use.
Registry& the_registry()
{
    static std::mutex first;
    std::lock_guard const lock(first);
    auto* registry = attribute<Registry>(MPI_COMM_SELF, registry_key());
    if (!registry) {
        registry = new Registry;
        MPI_Comm_set_attr(MPI_COMM_SELF, registry_key(), registry);
    }
    return *registry;
}

}  // namespace

void enter(Remaining const& window)
{
    auto& registry = the_registry();
    std::lock_guard const lock(registry.mutex);
    registry.windows.push_back(window);
}

void strike_out(MPI_Win window)
{
    auto& registry = the_registry();
    std::lock_guard const lock(registry.mutex);
    std::erase_if(registry.windows, [&](Remaining const& other) { return other.window == window; });
}

void tear(MPI_Win window)
{
    auto& registry = the_registry();
    std::lock_guard const lock(registry.mutex);
    for (auto& other : registry.windows)
        if (other.window == window) other.torn = true;
}

AttachmentKey::AttachmentKey() : value_(make_key(drop_object)) {}

std::shared_ptr<void> attached(MPI_Comm comm, AttachmentKey const& key)
{
    auto* const held = attribute<Held>(comm, key.value());
    return held ? *held : nullptr;
}

void attach(MPI_Comm comm, AttachmentKey const& key, std::shared_ptr<void> object)
{
    auto& registry = the_registry();
    {
        std::lock_guard const lock(registry.mutex);
        registry.holders.push_back({comm, key.value()});
    }
    MPI_Comm_set_attr(comm, key.value(), new Held(std::move(object)));
}

void detach(MPI_Comm comm, AttachmentKey const& key)
{
    MPI_Comm_delete_attr(comm, key.value());
}

}  // namespace tapioca::comm
