// The settings in the environment, which are the same on all ranks.
#pragma once

#include "core/result.hpp"
#include "settings/settings.hpp"

namespace tapioca::mpiio {

/// Reads them again if they have changed. Local.
core::Result<settings::Settings> environment();

/// Whether they turn off the library. A bad setting does, and is reported once. Local.
bool is_off();

}  // namespace tapioca::mpiio
