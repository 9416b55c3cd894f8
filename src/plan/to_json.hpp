// A plan as JSON, for reports and tools.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"

namespace tapioca::plan {

nlohmann::ordered_json to_json(Plan const& plan);

}  // namespace tapioca::plan
