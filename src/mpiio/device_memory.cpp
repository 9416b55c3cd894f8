#include "mpiio/device_memory.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <link.h>

namespace tapioca::mpiio {

namespace {

// The few declarations needed from cuda.h and hip_runtime_api.h, so that neither is required to build or to run.
using CuPointerGetAttribute = int (*)(void* data, int attribute, unsigned long long address);
constexpr int cu_memory_type = 2;
constexpr unsigned cu_device = 2;
constexpr int cu_is_managed = 8;

struct HipAttributes {
    int type;
    int device;
    void* device_pointer;
    void* host_pointer;
    int is_managed;
    unsigned flags;
    char room[64];  // for versions with more members
};
using HipPointerGetAttributes = int (*)(HipAttributes* attributes, void const* address);
using HipGetLastError = int (*)();
constexpr int hip_device = 2;      // since version 6; 1 before
constexpr int hip_device_old = 1;  // 1 is host memory since then, for which host_pointer is set

/// The runtimes that the program has loaded, in any way and at any time.
struct Runtimes {
    CuPointerGetAttribute cuda = nullptr;
    HipPointerGetAttributes hip = nullptr;
    HipGetLastError hip_forget = nullptr;
};

template <class Function>
void take(Function& function, std::string const& library, char const* name)
{
    void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return;
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    ::dlclose(handle);  // the program's own handle keeps the library loaded
}

int count_loads(dl_phdr_info* info, std::size_t /*bytes*/, void* loads)
{
    *static_cast<unsigned long long*>(loads) = info->dlpi_adds;
    return 1;
}

int add_name(dl_phdr_info* info, std::size_t /*bytes*/, void* names)
{
    if (info->dlpi_name) static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
    return 0;
}

/// Cheap if no library was loaded since the last call.
Runtimes runtimes()
{
    static auto& mutex = *new std::mutex;
    static Runtimes found;
    static unsigned long long searched = 0;
    std::lock_guard const lock(mutex);
    unsigned long long loads = 0;
    ::dl_iterate_phdr(count_loads, &loads);
    if (loads == searched) return found;
    searched = loads;
    std::vector<std::string> names;
    ::dl_iterate_phdr(add_name, &names);  // this holds the linker's lock, so the libraries are opened afterwards
    for (auto const& path : names) {
        auto const name = std::string_view(path).substr(path.rfind('/') + 1);
        if (name.starts_with("libcuda.so")) take(found.cuda, path, "cuPointerGetAttribute");
        if (name.starts_with("libamdhip64.so")) {
            take(found.hip, path, "hipPointerGetAttributes");
            take(found.hip_forget, path, "hipGetLastError");
        }
    }
    return found;
}

bool in_cuda(CuPointerGetAttribute ask, void const* address)
{
    auto const number = reinterpret_cast<unsigned long long>(address);
    unsigned type = 0;
    if (ask(&type, cu_memory_type, number) != 0 || type != cu_device) return false;
    unsigned managed = 0;  // the processor can access managed memory, too
    return ask(&managed, cu_is_managed, number) != 0 || managed == 0;
}

bool in_hip(Runtimes const& found, void const* address)
{
    HipAttributes attributes = {};
    if (found.hip(&attributes, address) != 0) {
        if (found.hip_forget) (void)found.hip_forget();
        return false;
    }
    bool const device =
        attributes.type == hip_device || (attributes.type == hip_device_old && !attributes.host_pointer);
    return device && attributes.is_managed == 0;
}

}  // namespace

bool in_device_memory(void const* address)
{
    if (!address) return false;
    auto const found = runtimes();
    return (found.cuda && in_cuda(found.cuda, address)) || (found.hip && in_hip(found, address));
}

}  // namespace tapioca::mpiio
