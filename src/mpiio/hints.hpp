// Hints: the program's hints for a file, from MPI_Info objects, which may differ from rank to rank. All functions are
// local.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "settings/settings.hpp"

namespace tapioca::mpiio {

class Hints {
public:
    /// The hints of MPI_File_open.
    explicit Hints(MPI_Info info);
    Hints(Hints const&) = delete;
    Hints& operator=(Hints const&) = delete;
    ~Hints();

    using Hint = std::pair<std::string, std::string>;

    /// Adds the hints for this library. Returns true if any of them is new: programs pass back the hints that they were
    /// shown, HDF5 with every access.
    bool add(MPI_Info info);
    [[nodiscard]] MPI_Info get() const { return info_; }
    [[nodiscard]] bool has(char const* name) const;
    /// Whether the hint `tapioca` says no.
    [[nodiscard]] bool refuse() const;
    /// The settings in force, from the environment and from these hints.
    [[nodiscard]] core::Result<settings::Settings> settings() const;
    /// What MPI_File_get_info shows in addition to the MPI library's own hints: whether the file is served and, if so,
    /// the settings in force.
    [[nodiscard]] std::vector<Hint> shown(bool serves) const;

private:
    MPI_Info info_ = MPI_INFO_NULL;
};

}  // namespace tapioca::mpiio
