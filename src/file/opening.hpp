// Opening a file: rank 0 does what must be done once and tells the others.
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
    std::shared_ptr<engine::Session>* kept = nullptr;  ///< where the session is kept, if not with the communicator
    /// If given, they count instead of communicator, options and hints, and on one node no MPI call is made, as long as
    /// the session knows its surroundings. On rank 0 the settings count.
    std::shared_ptr<engine::Session> session = nullptr;
    core::Result<settings::Settings> const* settings = nullptr;
};

/// Opens `file`, of which path, place, mode and `recovering` are given. It keeps its content until complete(): whatever
/// else may fail is done in between. Throws on all ranks alike. Collective.
void open(OpenFile& file, Opening const& opening);
/// Empties a file of Mode::create; then it is open for good. Throws on all ranks alike. Collective.
void complete(OpenFile& file);

/// For a collective call before a file is open: until the ranks have agreed on settings each goes by its own time-out.
/// The watchdog must be held for as long as the call lasts. Local.
[[nodiscard]] std::shared_ptr<comm::Watchdog> watch_unopened(MPI_Comm comm, char const* call, std::string const& path,
                                                             Options const& options, MPI_Info info);

}  // namespace tapioca::file
