// Target: where the data finally lives. Local calls on 64-bit offsets; complete or failed, never short.
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

/// Calls may come from the I/O thread and the main thread at once.
class Target {
public:
    virtual ~Target() = default;
    /// Writes the vectors' bytes one after the other from `offset` on. `vectors` is used up.
    virtual core::Status write(std::int64_t offset, std::span<iovec> vectors) = 0;
    /// Fills the vectors from `offset` on; returns the bytes read, fewer only at the file's end.
    virtual core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) = 0;
    /// Makes room for [begin, end), all of which will be written next. True if populate() is worth calling before
    /// each of these writes. Hints both: if they fail, so will the write, and tell why.
    virtual bool reserve(std::int64_t begin, std::int64_t end, machine::Reserve how);
    virtual void populate(std::int64_t begin, std::int64_t end);
    /// Stores pieces that lie close together, in ascending order, and nothing between them, where others may write at
    /// the same time: byte `at` of a stretch comes from bytes[at], and goes to the file at base + at. False, with any
    /// of them stored or none, if it cannot be done at once: then each must be written by itself.
    struct Stretch {
        std::int64_t begin, end;
    };
    virtual bool patch(std::int64_t base, std::span<Stretch const> stretches, std::byte const* bytes);
    /// From now on it is noted there whenever the file is about to be changed. Null: no longer. Not while another
    /// thread uses the target.
    virtual void tell_changes(std::shared_ptr<Changes> changes);
    virtual core::Status sync() = 0;
    virtual core::Result<std::uint64_t> size() = 0;
    /// Reports what the file system says when the descriptor is given back.
    virtual core::Status close() = 0;

    core::Status write(std::int64_t offset, std::span<std::byte const> bytes);
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<std::byte> bytes);
};

/// Nanoseconds since 1970, by the clock that the times of change of this host's own files come from.
std::uint64_t now_ns();

enum class OpenMode { create, update, read };

/// A file reached with pread and pwrite. Only `Access::create` makes it, and none empties it.
core::Result<std::unique_ptr<Target>> open_file(std::string const& path, OpenMode access);

/// How long a file can become, as far as its file system and this process's limits tell.
std::int64_t longest_file(int fd);

/// Takes all bytes from a plain file; others have none to take.
core::Status make_empty(int fd);

/// Makes the name of a new file durable.
core::Status sync_directory_of(std::string const& path);

/// Swallows writes, for measuring what precedes them; everything else goes to `file`.
std::unique_ptr<Target> discard_writes(std::unique_ptr<Target> file);

/// The descriptor of a file target, for asking about its file system.
int descriptor(Target const& file);

}  // namespace tapioca::target
