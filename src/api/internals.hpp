// Internals: gives the C interface access to the states behind File and Step.
#pragma once

#include <tapioca/tapioca.hpp>

#include "declared/file_state.hpp"
#include "declared/step_state.hpp"

namespace tapioca::api {

struct Internals {
    static declared::FileState& of(File& file) { return *file.state_; }
    static declared::StepState& of(Step& step) { return *step.state_; }
};

}  // namespace tapioca::api
