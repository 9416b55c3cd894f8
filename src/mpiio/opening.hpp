// Opening a file for the engine beside the MPI library, which has opened it before.
#pragma once

#include <memory>
#include <string>

#include "declared/file_state.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/hints.hpp"
#include "mpiio/opened.hpp"

namespace tapioca::mpiio {

/// Whether the file may have a log, by what all ranks have said alike. `wished`: some rank's hints ask for one. Local.
bool may_stage(Opened const& opened, bool wished);

/// That the file goes without the stage that the environment asks for, once, if only its ranks are in the way. Local.
void tell_unstaged(Opened const& opened);

/// A log of the file is there. If that is a dead job's, and not that of a program that is running, which is nobody's
/// concern, it is noted that this program may change the file. `what` says what to do about it. Local.
void go_past_marker(Opened const& opened, std::string const& what);

/// Opens the file on the channel, with the stage that the settings ask for, if it may have one; or without, if that
/// cannot be had. Collective. Throws an Error on all ranks if it cannot be opened at all.
std::shared_ptr<declared::FileState> open_file(Opened const& opened, Hints const& hints, Channel& channel,
                                               bool may_stage);

}  // namespace tapioca::mpiio
