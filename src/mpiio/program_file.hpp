// ProgramFile: a file as the program has it open, for all services of its handle. Steps has the file as the engine has
// it open.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "mpiio/call_names.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/open_arguments.hpp"
#include "mpiio/program_view.hpp"
#include "mpiio/set_access.hpp"

namespace tapioca::mpiio {

struct ProgramFile {
    explicit ProgramFile(OpenArguments what) : opened(std::move(what)) {}

    OpenArguments opened;
    ProgramView view;
    std::atomic<bool> atomic = false;
    std::atomic<bool> has_log = false;  ///< whether or not writes go to it now; the same on all ranks
    bool has_new_hints = false;         ///< this rank's hints differ from those with which the engine opened the file
    std::string off;                    ///< why everything is passed on from now on; the same on all ranks
    Calls calls;
    std::shared_ptr<Channel> channel;
    std::unique_ptr<SetAccess> set;  ///< for a set of subfiles: what the MPI library cannot do
};

}  // namespace tapioca::mpiio
