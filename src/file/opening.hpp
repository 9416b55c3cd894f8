// Opens a file: rank 0 does what must be done once and tells the others.
#pragma once

#include <memory>
#include <string>

#include "comm/watchdog.hpp"
#include "file/open_file.hpp"

namespace tapioca::file {

struct Opening {
    MPI_Comm comm;
    Options const& options;
    MPI_Info info;
    std::shared_ptr<engine::Session>* kept = nullptr;  ///< where the session is kept if not with the communicator
    /// If given, they are used instead of communicator, options and hints, and on one node no MPI call is made if the
    /// session already knows the machine. Rank 0's settings count.
    std::shared_ptr<engine::Session> session = nullptr;
    core::Result<settings::Settings> const* settings = nullptr;
};

/// Opens `file`, whose path, place, mode and `recovering` are set. The file keeps its content until complete(), so that
/// everything else that may fail can be done in between. Throws the same error on all ranks. Collective.
void open(OpenFile& file, Opening const& opening);
/// Empties a file of Mode::create and completes opening. Throws the same error on all ranks. Collective.
void complete(OpenFile& file);

/// For a collective call before a file is open: until the ranks have agreed on settings, each uses its own time-out.
/// The watchdog must be held during the call. Local.
[[nodiscard]] std::shared_ptr<comm::Watchdog> watch_unopened(MPI_Comm comm, char const* call, std::string const& path,
                                                             Options const& options, MPI_Info info);

}  // namespace tapioca::file
