// The files of a log: private, in a directory of the job's own, never reached through a symbolic link.
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

/// A part of a file in memory.
class MappedFile {
public:
    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();
    /// [begin, begin + bytes) of the file, which it has. `begin` is a multiple of the page size.
    static core::Result<MappedFile> of(int fd, std::uint64_t begin, std::uint64_t bytes, bool writable);
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::span<std::byte const> span() const { return {data_, static_cast<std::size_t>(bytes_)}; }
    /// Has the pages ready before they are used. An errno where that cannot be.
    int populate(bool writable) const;

private:
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// Where a pair of files is: DIRECTORY/NAME.meta and DIRECTORY/NAME.data.
struct LogPlace {
    std::string directory;
    std::string name;
    [[nodiscard]] std::string meta() const { return directory + "/" + name + ".meta"; }
    [[nodiscard]] std::string data() const { return directory + "/" + name + ".data"; }
};

/// The path of the job's directory in `parent`.
core::Result<std::string> directory_of(std::string const& parent, OpeningId const& identity);
/// The job's directory in `parent`, which must exist: made if it is not there yet, mode 0700, ours.
core::Result<std::string> make_directory(std::string const& parent, OpeningId const& identity);
/// Removes a file. Not being there is no failure; being another user's is, or where a job's own directory should be
/// something else.
core::Status remove_private(std::string const& path);
/// The same with the files of a log.
core::Status remove_log(LogPlace const& place);
/// Removes the job's directory if nothing is left in it but `full`, the sign that its tier was.
void remove_directory(std::string const& directory);

/// Renames a file within its directory.
core::Status rename_private(std::string const& from, std::string const& to);
/// Where a job's logs are, by its last name: tapioca-IDENTITY.
bool is_job_directory(std::string const& directory);

/// A new file, mode 0600. Fails if there is anything of that name.
core::Result<Descriptor> create_private(std::string const& path);
/// An existing one: refused unless it is a plain file of ours that nobody else may write.
core::Result<Descriptor> open_private(std::string const& path, bool writable);
/// Whether the file still has this name: who may rename things there could have given it to another.
bool is_named(Descriptor const& file, std::string const& path);
/// There is something of that name, and it is this user's: others may have put there what they like.
bool is_ours(std::string const& path);
/// Holds a file for as long as it is open, together with others that do; the kernel lets go when the process dies.
/// Where a file system has no locks, nothing happens.
void hold(Descriptor const& file);
/// Holds it alone; it must be writable. False if somebody has it.
bool hold_alone(Descriptor const& file);
/// The same, and false as well where there are no locks.
bool hold_for_certain(Descriptor const& file);
/// Whether somebody holds it, through another descriptor.
bool is_held(Descriptor const& file);
using core::size_of;

/// All of `bytes` at `offset`. Not a byte less.
core::Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes);
core::Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes);

OpeningId new_identity();

/// Keeps this node's other processes, and the background drainer, out. None if the directory is an empty text.
class Lock {
public:
    explicit Lock(std::string const& directory);
    Lock(Lock const&) = delete;
    Lock& operator=(Lock const&) = delete;

private:
    Descriptor directory_;
};

}  // namespace tapioca::stage
