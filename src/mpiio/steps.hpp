// Steps: the file as the engine has it open, and collective accesses as declared steps of it. For files with and
// without a log: what comes here goes to the file itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "declared/file_state.hpp"
#include "mpiio/early_access.hpp"
#include "mpiio/prepared_access.hpp"

namespace tapioca::mpiio {

struct ProgramFile;

class Steps {
public:
    explicit Steps(ProgramFile& program) : program_(program) {}

    [[nodiscard]] bool is_open() const { return file_ != nullptr; }
    /// @pre it is open
    [[nodiscard]] declared::FileState& file() const { return *file_; }
    /// The engine has opened the file. Local.
    void open(std::shared_ptr<declared::FileState> file);
    /// Closes it. Collective. What went wrong, if anything did.
    std::optional<Error> close();

    /// Runs an access, if all ranks can, with one reduction before it. If some rank has new hints, the file is to be
    /// opened anew; if something goes wrong before anything is moved, it is to be given up. Collective.
    Attempt serve(DataAccess const& request);
    /// The MPI library has done the blocking collective access that was just left to it. Local.
    void was_left();
    /// The same of a request that was looked at before. Counts no call and moves no pointer. Where all ranks are on one
    /// node, and check mode is off, it makes no MPI call. Collective.
    Attempt serve(DataAccess const& request, PreparedAccess const& part);
    /// Whether all ranks have opened the same file. `value` becomes the least of all ranks', in the same reduction.
    /// Collective.
    [[nodiscard]] bool identify(std::int64_t& value);

    /// Why the file is left to the MPI library where ranks have opened different ones.
    static constexpr char const* gone = "the file cannot be opened, or was renamed or replaced";

private:
    struct Decision;

    [[nodiscard]] std::int64_t identity() const;
    Decision decide(PreparedAccess const& part, bool ahead);
    std::size_t declare(PreparedAccess const& part);
    void learn(std::int64_t nanoseconds);
    [[nodiscard]] bool leave(DataAccess const& request, Decision const& decision);
    Attempt run(DataAccess const& request, PreparedAccess const& part, Decision const& decision);

    ProgramFile& program_;
    std::shared_ptr<declared::FileState> file_;  ///< null if it is not open
    bool identified_ = false;                    ///< all ranks have opened the same file
    std::string conditions_;                     ///< what a plan depends on besides the data: file system and settings
    EarlyAccess ahead_;
};

}  // namespace tapioca::mpiio
