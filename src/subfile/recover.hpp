// Completes a set whose job has ended without closing the file. All calls are local.
#pragma once

#include <optional>
#include <string>

#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

/// Makes the stub at `path` again, which was removed, or which something has changed, from what is in the set's
/// directory. Fails if the path is now that of another file.
core::Status restore_stub(std::string const& path);

/// What was found in the journals.
struct Recovered {
    WriterNote job = {};
    std::uint32_t journals = 0;
    std::size_t chunks = 0;        ///< that the index did not have
    std::uint64_t data_bytes = 0;  ///< of these
    std::size_t lost = 0;          ///< chunks that a crash of the machine has taken, though a journal has them
    std::int64_t size = 0;         ///< of the file now
};

/// Writes the index of everything that the journals say, durably. Returns nothing if the set is complete. Fails if a
/// job is writing it, or if nothing says what its subfiles hold. If this is killed, it can be repeated.
core::Result<std::optional<Recovered>> recover_set(std::string const& path, Stub const& stub);

}  // namespace tapioca::subfile
