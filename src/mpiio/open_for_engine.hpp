// Opens a file for the engine that the MPI library has opened before.
#pragma once

#include <memory>
#include <string>

#include "declared/file_state.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/hints.hpp"
#include "mpiio/open_arguments.hpp"

namespace tapioca::mpiio {

/// Whether the file may have a log, according to what all ranks know. `wished`: some rank's hints ask for one. Local.
bool may_stage(OpenArguments const& opened, bool wished);

/// Says once that the file is not staged although the environment asks for it, if the number of its ranks is the only
/// reason. Local.
void tell_unstaged(OpenArguments const& opened);

/// There is a log of the file. If it belongs to a dead job, notes that this program may change the file; `what` says
/// what to do about it. The log of a running program is ignored. Local.
void go_past_marker(OpenArguments const& opened, std::string const& what);

struct HowToOpen {
    bool staged = false;          ///< with the stage that the settings ask for, or without one, if that fails
    bool past_marker = false;     ///< although there is a log, that of a running program
    bool may_become_set = false;  ///< of subfiles, if the file is empty and the settings ask for that
};
/// Opens the file on the channel. Collective. Throws an Error on all ranks if it cannot be opened at all.
std::shared_ptr<declared::FileState> open_file(OpenArguments const& opened, Hints const& hints, Channel& channel,
                                               HowToOpen const& how);

}  // namespace tapioca::mpiio
