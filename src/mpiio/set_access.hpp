// SetAccess: does for a set of subfiles what the MPI library does for other files, since the MPI library has only the
// set's stub open: independent accesses, and the size of the file. File pointers remain the MPI library's.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "mpiio/data_access.hpp"
#include "mpiio/prepared_access.hpp"
#include "mpiio/shape_cache.hpp"

namespace tapioca::declared {
class FileState;
}

namespace tapioca::mpiio {

struct ProgramFile;

/// Functions that return int return MPI error classes. Any thread may call those that are local.
class SetAccess {
public:
    /// `file`: the set, opened for the engine.
    SetAccess(ProgramFile& program, std::shared_ptr<declared::FileState> file);

    /// This rank's part of an access. Local.
    AccessOutcome access(DataAccess const& request);
    /// An independent access at the shared pointer, which only a rank that is alone can move together with it. Local.
    AccessOutcome access_shared(DataAccess request);
    /// The size of the file. Local.
    int size(MPI_Offset& bytes);
    /// The end of the file as the program sees it through its view, in etypes. Local.
    int end(MPI_Offset& etypes);
    /// Sets the size: exactly, or at least. Collective.
    int resize(MPI_Offset size, bool exactly);
    /// Makes everything durable. Collective.
    int sync();

    // The MPI library's error strings do not say what is wrong with a set. So these say it, in one line for each file
    // and kind of failure, and return the error class. Local.

    /// This rank has failed by itself. One rank of a node says so.
    int failed_alone(core::Failure const& failure);
    /// All ranks have this error, and the first one says so.
    int failed_together(Error const& error);
    /// `what` is not supported: a subject and a verb. `together`: all ranks ask for it.
    int refuse(std::string const& what, bool together);

private:
    int together(std::function<void()> const& call);
    bool is_new(std::string const& kind);
    [[nodiscard]] std::string line(std::string const& what) const;
    void tell_alone(std::string const& kind, std::string const& what);
    [[nodiscard]] core::Result<std::int64_t> move(DataAccess const& request, PreparedAccess const& part);
    core::Status write(pattern::Variable const& variable, std::int64_t shift, std::byte const* data);

    ProgramFile& program_;
    std::shared_ptr<declared::FileState> file_;
    std::mutex mutex_;
    std::set<std::string> told_;  ///< kinds of failures
};

}  // namespace tapioca::mpiio
