// The names of the strategies that place aggregators. The strategies themselves are in plan/strategy.
#pragma once

#include <span>
#include <string_view>

namespace tapioca::core {

/// The names in strategies.inc.
std::span<std::string_view const> strategy_names();

inline constexpr std::string_view default_strategy = "CONTENTION_AWARE";

}  // namespace tapioca::core
