// Target: the final destination of the data. Calls are local, use 64-bit offsets, and either move all bytes or fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <sys/uio.h>

#include "core/result.hpp"
#include "machine/storage.hpp"
#include "target/changes.hpp"

namespace tapioca::target {

/// The I/O thread and the main thread may make calls at the same time.
class Target {
public:
    virtual ~Target() = default;
    /// Writes the vectors' bytes one after the other from `offset` on. Modifies `vectors`.
    virtual core::Status write(std::int64_t offset, std::span<iovec> vectors) = 0;
    /// Fills the vectors from `offset` on. Returns the number of bytes read, which is smaller only at the end of the
    /// file.
    virtual core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) = 0;
    /// Makes room for [begin, end), all of which will be written next. Returns true if populate() should be called
    /// before each of these writes. Both are hints: if they fail, the write will fail, too, and give the reason.
    virtual bool reserve(std::int64_t begin, std::int64_t end, machine::Reserve how);
    virtual void populate(std::int64_t begin, std::int64_t end);
    /// Stores pieces that lie close together, in ascending order, without touching anything between them, where others
    /// may write at the same time. Byte `at` of a stretch comes from bytes[at] and goes to base + at in the file.
    /// Returns false if this is not possible; then any of the stretches may have been stored, and each must be written
    /// by itself.
    struct Stretch {
        std::int64_t begin, end;
    };
    virtual bool patch(std::int64_t base, std::span<Stretch const> stretches, std::byte const* bytes);
    /// From now on, records there whenever the file is about to be changed; null: stops recording. Must not be called
    /// while another thread uses the target.
    virtual void tell_changes(std::shared_ptr<Changes> changes);
    virtual core::Status sync() = 0;
    virtual core::Result<std::uint64_t> size() = 0;
    /// Closes the descriptor and reports errors of the file system.
    virtual core::Status close() = 0;
    /// The descriptor of the file that has the target's name, for queries about it and its file system; -1 if there is
    /// none.
    [[nodiscard]] virtual int descriptor() const { return -1; }

    core::Status write(std::int64_t offset, std::span<std::byte const> bytes);
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<std::byte> bytes);
};

/// Nanoseconds since 1970, by the clock from which the times of this host's own files come.
std::uint64_t now_ns();

enum class OpenMode { create, update, read };

/// A file that is accessed with pread and pwrite. Only `OpenMode::create` creates it, and no mode empties it.
core::Result<std::unique_ptr<Target>> open_file(std::string const& path, OpenMode access);

/// The greatest size that a file can have, according to its file system and this process's limits.
std::int64_t longest_file(int fd);

/// Empties a plain file; has no effect on others.
core::Status make_empty(int fd);

/// Makes the name of a new file durable.
core::Status sync_directory_of(std::string const& path);

/// Discards writes, for measuring what precedes them; everything else goes to `file`.
std::unique_ptr<Target> discard_writes(std::unique_ptr<Target> file);

}  // namespace tapioca::target
