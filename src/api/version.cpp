// The version of the library that a program runs with, for C++ and C.
#include <tapioca/tapioca.h>
#include <tapioca/version.hpp>

tapioca::Version tapioca::version() noexcept
{
    return {TAPIOCA_VERSION_MAJOR, TAPIOCA_VERSION_MINOR, TAPIOCA_VERSION_PATCH};
}

int TAPIOCA_Get_version(int* major, int* minor, int* patch)
{
    auto const version = tapioca::version();
    if (major) *major = version.major;
    if (minor) *minor = version.minor;
    if (patch) *patch = version.patch;
    return TAPIOCA_SUCCESS;
}
