// MemoryHead: the first bytes of a file of named memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/host.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::machine {

/// The memory's bytes follow at this place of the file.
inline constexpr std::uint64_t memory_head_bytes = 4096;

struct MemoryHead {
    static constexpr std::array<char, 8> right_magic = {'T', 'A', 'P', 'I', 'O', 'M', 'E', 'M'};

    std::array<char, 8> magic = right_magic;
    std::uint32_t version = 1;
    std::uint32_t persistency = 0;  ///< of its tier when it was allocated
    std::uint64_t bytes = 0;        ///< without the head
    std::uint64_t checksum = 0;     ///< of what comes before

    [[nodiscard]] std::uint64_t right_checksum() const
    {
        auto const* const begin = reinterpret_cast<char const*>(this);
        return core::digest({begin, offsetof(MemoryHead, checksum)});
    }
};
static_assert(sizeof(MemoryHead) == 32);

inline MemoryHead make_memory_head(std::uint64_t bytes, Persistency persistency)
{
    MemoryHead head;
    head.persistency = static_cast<std::uint32_t>(persistency);
    head.bytes = bytes;
    head.checksum = head.right_checksum();
    return head;
}

/// Why a file of `size` bytes that begins like this is no named memory; empty if it is.
inline std::string what_is_wrong(MemoryHead const& head, std::uint64_t size)
{
    if (head.magic != MemoryHead::right_magic) return "it does not begin like named memory";
    if (head.version != 1) return "another version of TAPIOCA has written it";
    if (head.checksum != head.right_checksum() || head.persistency >= core::persistency_names.size())
        return "its head has been changed";
    if (size < memory_head_bytes || size - memory_head_bytes != head.bytes) return "it has been cut or extended";
    return {};
}

}  // namespace tapioca::machine
