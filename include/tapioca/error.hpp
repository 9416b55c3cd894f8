// Errors: one exception type, which is the same on every rank.
#pragma once

#include <tapioca/cxx20.hpp>

#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)

namespace tapioca {

enum class Errc {
    ok = 0,
    invalid_argument,  ///< a value that is never valid, such as a negative offset or a buffer of the wrong size
    invalid_state,     ///< a call at the wrong time, such as after close(), or a variable that is supplied twice
    setting,           ///< an unknown or malformed TAPIOCA_* variable, hint or option
    mismatch,      ///< ranks found different files, passed different arguments, or write the same bytes (check mode)
    not_found,     ///< the file or a directory on its path does not exist
    permission,    ///< the file system refuses access
    is_directory,  ///< the path names a directory
    no_space,      ///< the target, its quota or shared memory is full
    io,            ///< any other failure of the file system
    memory,        ///< the memory limit or the machine's memory is too small
    unsupported,   ///< something that this version cannot do
};

/// Thrown by collective calls. The ranks agree first, so that every rank throws the same error: that of the lowest
/// rank that failed.
class Error : public std::runtime_error {
public:
    Error(Errc code, int rank, int sys_errno, std::string path, std::string const& message)
        : std::runtime_error(message), code_(code), rank_(rank), sys_errno_(sys_errno), path_(std::move(path))
    {
    }
    [[nodiscard]] Errc code() const noexcept { return code_; }
    /// The rank (of the file's communicator) on which the error happened, or -1 if it does not belong to one rank.
    [[nodiscard]] int rank() const noexcept { return rank_; }
    /// The errno of the system call that failed, or 0.
    [[nodiscard]] int sys_errno() const noexcept { return sys_errno_; }
    [[nodiscard]] std::string const& path() const noexcept { return path_; }

private:
    Errc code_;
    int rank_;
    int sys_errno_;
    std::string path_;
};

}  // namespace tapioca

#pragma GCC visibility pop
