// The names of the strategies that place aggregators. What is behind a name is the planner's: plan/strategy.
#pragma once

#include <span>
#include <string_view>

namespace tapioca::core {

/// As strategies.inc has them.
std::span<std::string_view const> strategy_names();

inline constexpr std::string_view default_strategy = "CONTENTION_AWARE";

}  // namespace tapioca::core
