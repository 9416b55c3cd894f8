// Tier: a kind of memory or storage on a node that can hold aggregation buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "core/persistency.hpp"
#include "core/result.hpp"

namespace tapioca::machine {

/// Where a figure comes from, in increasing authority.
enum class Origin { assumed, hwloc, measured, platform };
/// The names in platform files, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> origin_names = {"assumed", "hwloc", "measured", "platform"};

constexpr std::string_view name(Origin origin)
{
    return origin_names[static_cast<std::size_t>(origin)];
}

struct Figure {
    double value = 0;
    Origin origin = Origin::assumed;
};

struct TierTraits {
    std::string name;   ///< as users write it: dram, hbm, ssd, numa:2, or a platform file's own name, such as nvr
    std::string kind;   ///< name of its kind, a row of rows.inc
    std::string place;  ///< the directory of an ssd, the NUMA nodes of numa memory ("1" or "1,3")
    Figure latency_s;
    Figure write_bandwidth;  ///< bytes per second
    Figure read_bandwidth;
    Figure capacity_bytes;  ///< free bytes
    Persistency persistency = Persistency::none;
};

/// Memory of a tier, mapped so that other processes of the node can map it, too. All its pages are allocated: if they
/// do not fit, this is an error when the mapping is made, and never a signal later.
class TierMapping {
public:
    TierMapping() = default;
    TierMapping(std::byte* data, std::uint64_t bytes, std::uint64_t inode);
    TierMapping(TierMapping&& other) noexcept;
    TierMapping& operator=(TierMapping&& other) noexcept;
    ~TierMapping();

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Name of the file behind it, for attach(). Only the creator has a name, until unlink(), which the destructor
    /// calls.
    [[nodiscard]] std::string const& name() const { return name_; }
    /// Inode of the file behind it, because the name may have been given to another file meanwhile.
    [[nodiscard]] std::uint64_t inode() const { return inode_; }
    /// Removes the file's name, because nobody else will attach. The memory stays until all have unmapped it.
    void unlink();
    /// Gives the file the name `path`, which it keeps when this mapping ends: from now on, others remove it. Fails with
    /// EEXIST if the name is taken. Returns the descriptor, with a shared lock.
    core::Result<core::Descriptor> keep_as(std::string const& path);
    /// Releases the memory but keeps its addresses for ever: code that may still access them finds private memory
    /// without content, which takes no memory until it is touched.
    void leave();
    /// memFlush: makes sure that what was written is in the tier (on an ssd: on the device).
    core::Status flush() const;

private:
    friend core::Result<TierMapping> create_file(struct FileRequest const& request);
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint64_t inode_ = 0;
    std::string name_;
    int locked_ = -1;  ///< the file, locked while it has its name; a file whose lock is free may be removed
};

/// When a process maps the pages. The space for them is allocated in any case.
enum class Pages { now, when_touched };

/// The papers' memory abstraction. Local: nothing here communicates.
class Tier {
public:
    virtual ~Tier() = default;
    [[nodiscard]] TierTraits const& traits() const { return traits_; }
    /// memAlloc: new, zeroed memory; an empty mapping for 0 bytes.
    [[nodiscard]] virtual core::Result<TierMapping> create(std::uint64_t bytes, Pages pages = Pages::now) const = 0;
    /// Maps memory that another process of this node has created and not yet unlinked.
    [[nodiscard]] virtual core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                           Pages pages = Pages::now) const = 0;
    /// The directory for files whose bytes are in this tier, once bind() was called for each.
    [[nodiscard]] virtual std::string directory() const;
    [[nodiscard]] virtual core::Status bind(int fd) const;

protected:
    explicit Tier(TierTraits traits) : traits_(std::move(traits)) {}
    TierTraits traits_;
};

/// The tier that `traits` describe, on this node. Fails, with advice, if the node does not have it.
core::Result<std::unique_ptr<Tier>> make_tier(TierTraits const& traits);

/// The traits with assumed figures in place of unknown ones.
TierTraits with_assumptions(TierTraits traits);

/// The tier that every node has: the memory in which its processes work. Its figures are unknown here.
TierTraits ordinary_memory();
bool is_ordinary(TierTraits const& tier);
/// True if its bytes are on a device: they take no memory of the node, and are stored only after TierMapping::flush().
bool is_device(TierTraits const& tier);
/// Its place as shown to users: "/scratch", "NUMA 1".
std::string shown_place(TierTraits const& tier);

/// The tiers of this node, fastest first, with the bytes that are free: dram, and what hwloc knows (HBM, CXL, NVM).
std::vector<TierTraits> find_tiers();
/// The tiers of this node on a machine whose platform file has `described`. If the node has a tier, the platform file's
/// figures replace those that were found, except that the smaller of the two capacities counts.
std::vector<TierTraits> tiers_here(std::vector<TierTraits> const& described);
/// The tier that `wish` names ("hbm", "ssd:/scratch", "numa:2") on a node with `tiers`: one of them, or a tier with a
/// place of its own. Fails with the available names.
core::Result<TierTraits> choose_tier(std::string const& wish, std::vector<TierTraits> const& tiers);
/// Bytes that are free for a tier now: the node's memory under its cgroups' limits, or a directory's file system.
std::uint64_t free_bytes(TierTraits const& tier);

/// The persistency called `name`.
std::optional<Persistency> persistency_named(std::string_view name);
std::optional<Origin> origin_named(std::string_view name);

}  // namespace tapioca::machine
