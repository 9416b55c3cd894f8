// The names of Persistency. Tiers have a persistency, and settings, which do not know tiers, name one.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <tapioca/options.hpp>

namespace tapioca::core {

/// The names in settings and platform files, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> persistency_names = {"none", "job", "permanent"};

constexpr std::string_view name(Persistency persistency)
{
    return persistency_names[static_cast<std::size_t>(persistency)];
}

}  // namespace tapioca::core
