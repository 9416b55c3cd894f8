// Objects kept with communicators, as MPI attributes: no globals, and gone when MPI says so.
#include <algorithm>

#include "comm/team.hpp"

namespace tapioca::comm {

namespace {

using Held = std::shared_ptr<void>;

/// On MPI_COMM_SELF, whose attributes go first in MPI_Finalize while MPI still works: the communicators that
/// hold something of ours.
struct Registry {
    std::vector<MPI_Comm> holders;
};

int drop_object(MPI_Comm comm, int /*key*/, void* value, void* /*extra*/);
int drop_registry(MPI_Comm comm, int key, void* value, void* extra);

int make_key(MPI_Comm_delete_attr_function* drop)
{
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, nullptr);
    return key;
}

int object_key()
{
    static int const key = make_key(drop_object);
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

int drop_object(MPI_Comm comm, int /*key*/, void* value, void* /*extra*/)
{
    if (auto* const registry = attribute<Registry>(MPI_COMM_SELF, registry_key())) std::erase(registry->holders, comm);
    delete static_cast<Held*>(value);
    return MPI_SUCCESS;
}

int drop_registry(MPI_Comm /*comm*/, int /*key*/, void* value, void* /*extra*/)
{
    auto* const registry = static_cast<Registry*>(value);
    // An object dropped from here looks for the registry in vain or finds this one, and only shortens its list.
    auto const holders = registry->holders;
    for (MPI_Comm const holder : holders) MPI_Comm_delete_attr(holder, object_key());
    delete registry;
    return MPI_SUCCESS;
}

}  // namespace

std::shared_ptr<void> attached(MPI_Comm comm)
{
    auto* const held = attribute<Held>(comm, object_key());
    return held ? *held : nullptr;
}

void attach(MPI_Comm comm, std::shared_ptr<void> object)
{
    auto* registry = attribute<Registry>(MPI_COMM_SELF, registry_key());
    if (!registry) {
        registry = new Registry;
        MPI_Comm_set_attr(MPI_COMM_SELF, registry_key(), registry);
    }
    registry->holders.push_back(comm);
    MPI_Comm_set_attr(comm, object_key(), new Held(std::move(object)));
}

}  // namespace tapioca::comm
