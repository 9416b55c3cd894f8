// NamedMemory: memory of a tier that other processes of the same node and user find by the tier and a name, and that
// lasts as long as the tier's persistency says.
//
// It is a file in the tier's directory: a head of 4 KiB, then the bytes. Every process that has the memory holds a
// shared lock (flock) on the file. Memory that is not to outlive its processes is removed by the last of them, or, if
// that was killed, by the next process that looks: then nobody holds the lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::machine {

/// Names are any text of 1 to this many bytes; what may not be in the name of a file is escaped.
inline constexpr std::size_t longest_memory_name = 64;

/// An open file of named memory, with the lock that says that this process has it.
class HeldFile {
public:
    HeldFile() = default;
    /// Takes over a file on which this process has a shared lock.
    HeldFile(core::Descriptor file, std::string path, std::uint64_t bytes, Persistency persistency);
    HeldFile(HeldFile&& other) noexcept;
    HeldFile& operator=(HeldFile&& other) noexcept;
    /// Removes the file if it is not to outlive its processes and nobody else holds it.
    ~HeldFile();
    /// Opens the file and locks it. not_found: it does not exist, or nobody has had it any more, and it is gone now.
    static core::Result<HeldFile> open(std::string const& path);

    [[nodiscard]] int fd() const { return file_.get(); }
    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    core::Descriptor file_;
    std::string path_;
    std::uint64_t bytes_ = 0;
    Persistency persistency_ = Persistency::none;
};

/// Local. The functions of one object, other than write() and read(), are for one thread at a time.
class NamedMemory {
public:
    /// memAlloc: new, zeroed memory. Fails if there is memory of this name.
    static core::Result<NamedMemory> create(Tier const& tier, std::string const& name, std::uint64_t bytes);
    /// Memory that this or another process has created.
    static core::Result<NamedMemory> attach(Tier const& tier, std::string const& name);

    [[nodiscard]] TierTraits const& traits() const { return traits_; }
    [[nodiscard]] std::string const& name() const { return name_; }
    [[nodiscard]] std::string const& path() const { return held_.path(); }
    [[nodiscard]] std::span<std::byte> data() const;
    /// memWrite and memRead. A failing device is an error and not a signal, unlike with data().
    [[nodiscard]] core::Status write(std::uint64_t offset, std::span<std::byte const> bytes) const;
    [[nodiscard]] core::Status read(std::uint64_t offset, std::span<std::byte> bytes) const;
    /// memFlush: makes sure that the bytes, and on a device also the name, are in the tier.
    [[nodiscard]] core::Status flush() const;
    /// memFree: removes the name. Others that have the memory keep it until they end. If this fails, nothing has
    /// changed.
    [[nodiscard]] core::Status free();

private:
    NamedMemory(TierTraits traits, std::string name, HeldFile held, TierMapping mapping);
    [[nodiscard]] core::Status check_range(std::uint64_t offset, std::uint64_t bytes) const;
    [[nodiscard]] core::Failure told(core::Failure failure) const;
    TierTraits traits_;
    std::string name_;
    HeldFile held_;
    TierMapping mapping_;  ///< with the head; unmapped before the lock is dropped
};

/// Where the memory of a name is, or would be.
std::string path_of_memory(Tier const& tier, std::string const& name);
/// Removes the memory of this name, also if it is damaged.
core::Status remove_memory(Tier const& tier, std::string const& name);
/// The names of a tier's memory of this user, in alphabetical order; damaged memory is listed, too.
core::Result<std::vector<std::string>> list_memory(Tier const& tier);

/// Removes the name of an open file, unless another file has been given this name since.
core::Status remove_name(core::Descriptor const& file, std::string const& path);
/// Whether a file is called like named memory of this user.
bool is_named_memory(std::string_view file);
/// Removes memory that was not to outlive its processes and that nobody has any more.
void remove_unused_memory(std::string const& path);

}  // namespace tapioca::machine
