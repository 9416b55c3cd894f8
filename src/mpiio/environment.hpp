// The environment's settings, which are the same on all ranks.
#pragma once

#include "core/result.hpp"
#include "settings/settings.hpp"

namespace tapioca::mpiio {

/// Read anew when they have changed. Local.
core::Result<settings::Settings> environment();

/// Whether they turn everything off. A bad setting does, and is told once. Local.
bool is_off();

}  // namespace tapioca::mpiio
