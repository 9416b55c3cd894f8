// The version of the library at run time. <tapioca/version.h> has the version of the headers, for the preprocessor.
#pragma once

#include <tapioca/cxx20.hpp>

#include <compare>

#include <tapioca/version.h>

#pragma GCC visibility push(default)

namespace tapioca {

struct Version {
    int major = 0;
    int minor = 0;
    int patch = 0;
    friend constexpr auto operator<=>(Version const&, Version const&) noexcept = default;
};

/// The version of the library that the program runs with. Local; may be called before MPI_Init.
[[nodiscard]] Version version() noexcept;

}  // namespace tapioca

#pragma GCC visibility pop
