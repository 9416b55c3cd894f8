// Steps: the file as the engine has it open, and collective accesses as declared steps of it. It is used for files with
// and without a log: accesses that get here go to the file itself.
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
    /// @pre the file is open
    [[nodiscard]] declared::FileState& file() const { return *file_; }
    /// The engine has opened the file. Local.
    void open(std::shared_ptr<declared::FileState> file);
    /// Closes the file. Collective. Returns the error, if there was one.
    std::optional<Error> close();

    /// Runs an access, if all ranks can take part, with one reduction before it. If some rank has new hints, the file
    /// must be opened again; if an error occurs before any data is moved, the file must be given up. Collective.
    Attempt serve(DataAccess const& request);
    /// The MPI library has done the blocking collective access that was just left to it. Local.
    void was_left();
    /// The same for an access that is already prepared. Does not count the call or move the pointer. If all ranks are
    /// on one node and check mode is off, it makes no MPI call. Collective.
    Attempt serve(DataAccess const& request, PreparedAccess const& part);
    /// Whether all ranks have opened the same file. The same reduction replaces `value` by the least of all ranks'
    /// values. Collective.
    [[nodiscard]] bool identify(std::int64_t& value);

    /// Why the file is left to the MPI library if ranks have opened different files.
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
    std::shared_ptr<declared::FileState> file_;  ///< null if the file is not open
    bool identified_ = false;                    ///< all ranks have opened the same file
    std::string conditions_;  ///< what a plan depends on in addition to the data: file system and settings
    EarlyAccess ahead_;
};

}  // namespace tapioca::mpiio
