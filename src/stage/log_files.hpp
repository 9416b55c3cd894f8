// The files of a log. They are private, in a directory of the job, and never reached through a symbolic link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/descriptor.hpp"
#include "core/result.hpp"
#include "stage/log_format.hpp"

namespace tapioca::stage {

using core::Descriptor;

/// A mapped part of a file.
class MappedFile {
public:
    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();
    /// Maps [begin, begin + bytes), which must be inside the file. `begin` is a multiple of the page size.
    static core::Result<MappedFile> of(int fd, std::uint64_t begin, std::uint64_t bytes, bool writable);
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::span<std::byte const> span() const { return {data_, static_cast<std::size_t>(bytes_)}; }
    /// Makes the pages available before they are used. Returns an errno if this is not possible.
    int populate(bool writable) const;

private:
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// The location of a pair of files: DIRECTORY/NAME.meta and DIRECTORY/NAME.data.
struct LogPlace {
    std::string directory;
    std::string name;
    [[nodiscard]] std::string meta() const { return directory + "/" + name + ".meta"; }
    [[nodiscard]] std::string data() const { return directory + "/" + name + ".data"; }
};

/// The path of the job's directory in `parent`.
core::Result<std::string> directory_of(std::string const& parent, OpeningId const& identity);
/// The job's directory in `parent`, which must exist. The directory is created if necessary, with mode 0700, and must
/// belong to this user.
core::Result<std::string> make_directory(std::string const& parent, OpeningId const& identity);
/// Removes a file. It is no failure if the file does not exist. It is one if the file belongs to another user, or if
/// the job's directory is something else.
core::Status remove_private(std::string const& path);
/// Removes the files of a log.
core::Status remove_log(LogPlace const& place);
/// Removes the job's directory if it contains nothing but `full`, which marks that the tier was full.
void remove_directory(std::string const& directory);

/// Renames a file within its directory.
core::Status rename_private(std::string const& from, std::string const& to);
/// Whether a directory is that of a job's logs, by its last name: tapioca-IDENTITY.
bool is_job_directory(std::string const& directory);

/// Creates a file with mode 0600. Fails if the name exists.
core::Result<Descriptor> create_private(std::string const& path);
/// Opens an existing file. Refuses it unless it is a plain file of this user that nobody else may write.
core::Result<Descriptor> open_private(std::string const& path, bool writable);
/// Whether the file still has this name: a user who may rename files there could have given the name to another file.
bool is_named(Descriptor const& file, std::string const& path);
/// True if the name exists and belongs to this user; other users may have put a file there.
bool is_ours(std::string const& path);
/// Locks a file for as long as it is open, shared with others; the kernel releases the lock when the process dies. Has
/// no effect on file systems without locks.
void hold(Descriptor const& file);
/// Locks a file exclusively; it must be writable. Returns false if somebody else has it locked.
bool hold_alone(Descriptor const& file);
/// The same, but also returns false if there are no locks.
bool hold_for_certain(Descriptor const& file);
/// Whether somebody has it locked through another descriptor.
bool is_held(Descriptor const& file);
using core::size_of;

/// Writes all of `bytes` at `offset`, or fails.
core::Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes);
core::Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes);

OpeningId new_identity();

/// Excludes this node's other processes and the background drainer. Takes no lock if the directory is an empty string.
class Lock {
public:
    explicit Lock(std::string const& directory);
    Lock(Lock const&) = delete;
    Lock& operator=(Lock const&) = delete;

private:
    Descriptor directory_;
};

}  // namespace tapioca::stage
