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

#include "core/persistency.hpp"
#include "core/result.hpp"

namespace tapioca::machine {

/// Where a figure comes from, by increasing authority.
enum class Origin { assumed, hwloc, measured, platform };
/// In platform files, in the order of the enumeration.
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
    std::string name;   ///< as users write it: dram, hbm, ssd, numa:2, or a platform file's own, such as nvr
    std::string kind;   ///< what makes it: a row of rows.inc
    std::string place;  ///< the directory of an ssd, the NUMA nodes of numa memory ("1" or "1,3")
    Figure latency_s;
    Figure write_bandwidth;  ///< bytes per second
    Figure read_bandwidth;
    Figure capacity_bytes;  ///< what is free
    Persistency persistency = Persistency::none;
};

/// Memory of a tier, mapped so that other processes of the node can map it, too. All its pages are there: what does not
/// fit is an error when it is made, never a signal later.
class TierMapping {
public:
    TierMapping() = default;
    TierMapping(std::byte* data, std::uint64_t bytes, std::uint64_t inode);
    TierMapping(TierMapping&& other) noexcept;
    TierMapping& operator=(TierMapping&& other) noexcept;
    ~TierMapping();

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Of the file behind it, for attach(). Only the creator has one, until unlink(), which its destructor calls.
    [[nodiscard]] std::string const& name() const { return name_; }
    /// Of the file behind it: a name may have been given to another file meanwhile.
    [[nodiscard]] std::uint64_t inode() const { return inode_; }
    /// Nobody else will attach: the file's name is removed. The memory stays until all have unmapped it.
    void unlink();
    /// Gives the memory back and keeps its addresses, for good: whoever may still read and write there finds private
    /// memory of no content, which takes nothing until it is touched.
    void leave();
    /// memFlush: what was written is in the tier (on an ssd: on the device).
    core::Status flush() const;

private:
    friend core::Result<TierMapping> create_file(struct FileRequest const& request);
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint64_t inode_ = 0;
    std::string name_;
    int locked_ = -1;  ///< the file, locked while it has its name: who finds the lock free may remove it
};

/// When a process gets its view of a mapping's pages. The room for them is taken in any case.
enum class Pages { now, when_touched };

/// The papers' memory abstraction. Local: nothing communicates here.
class Tier {
public:
    virtual ~Tier() = default;
    [[nodiscard]] TierTraits const& traits() const { return traits_; }
    /// memAlloc: new, zeroed memory; an empty Mapping for 0 bytes.
    [[nodiscard]] virtual core::Result<TierMapping> create(std::uint64_t bytes, Pages pages = Pages::now) const = 0;
    /// The memory that another process of this node has created and not yet unlinked.
    [[nodiscard]] virtual core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                           Pages pages = Pages::now) const = 0;
    /// Where files lie whose bytes are in this tier, once bind() was called for each.
    [[nodiscard]] virtual std::string directory() const;
    [[nodiscard]] virtual core::Status bind(int fd) const;

protected:
    explicit Tier(TierTraits traits) : traits_(std::move(traits)) {}
    TierTraits traits_;
};

/// The tier that `traits` describe, on this node. Fails, saying what to do, if the node lacks it.
core::Result<std::unique_ptr<Tier>> make_tier(TierTraits const& traits);

/// The same with assumptions in place of what is not known.
TierTraits with_assumptions(TierTraits traits);

/// What every node has: the memory that its processes work in. Nothing else is known of it here.
TierTraits ordinary_memory();
bool is_ordinary(TierTraits const& tier);
/// True if its bytes are on a device: they take no memory of the node, and are there only after Mapping::flush().
bool is_device(TierTraits const& tier);
/// Its place for people: "/scratch", "NUMA 1".
std::string shown_place(TierTraits const& tier);

/// The tiers of this node, fastest first, with what is really free: dram, and what hwloc knows (HBM, CXL, NVM).
std::vector<TierTraits> find_tiers();
/// What `wish` names ("hbm", "ssd:/scratch", "numa:2") on a node with `tiers`: one of them, or a tier with a place of
/// its own. Fails with the names there are.
core::Result<TierTraits> choose_tier(std::string const& wish, std::vector<TierTraits> const& tiers);
/// Bytes that are free for a tier now: the node's memory under its cgroups' limits, a directory's file system.
std::uint64_t free_bytes(TierTraits const& tier);

/// The one that is called `name`.
std::optional<Persistency> persistency_named(std::string_view name);
std::optional<Origin> origin_named(std::string_view name);

}  // namespace tapioca::machine
