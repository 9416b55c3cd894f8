// ChunkMarks: the small file beside an unfinished join that says which of its chunks are there. It counts only for the
// set, the unfinished file and the boot of the machines for which it was made. All calls are local.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "subfile/stub.hpp"

namespace tapioca::subfile {

/// What the marks are about. The file begins with it, and a byte for each chunk follows: 1 if it was copied.
struct MarksHead {
    char magic[8];
    std::uint32_t version;
    std::uint32_t bytes;  ///< of the head
    SetId identity;
    std::uint64_t generation;
    std::uint64_t facts;    ///< of the files of the set
    std::uint64_t kernels;  ///< by which boots of which machines the chunks were written; 0: not known
    std::uint64_t inode;    ///< of the unfinished file
    std::int64_t size;
    std::int64_t chunk_bytes;
    char directory[256];  ///< of the subfiles, without a path
    std::uint64_t checksum;
};

class ChunkMarks {
public:
    /// Opens or makes the file. Returns false if there are no marks that count for this head: then begin() must be
    /// called. Fills in the rest of the head.
    core::Result<bool> open(std::string const& path, MarksHead head, std::uint64_t chunks);
    /// Takes away all marks, empties the unfinished file, and writes the head: in an order in which marks never count
    /// for a file that has lost its chunks.
    core::Status begin(int unfinished);
    /// On another process, after that.
    core::Status attach(std::string const& path, std::uint64_t chunks);

    [[nodiscard]] bool has(std::uint64_t chunk) const { return marks_[chunk] == std::byte{1}; }
    [[nodiscard]] std::uint64_t count() const;
    core::Status set(std::uint64_t chunk);

    /// The head of marks at `path`, if there are any that this user has made.
    static std::optional<MarksHead> look(std::string const& path);

private:
    core::Descriptor file_;
    MarksHead head_ = {};
    std::vector<std::byte> marks_;
};

}  // namespace tapioca::subfile
