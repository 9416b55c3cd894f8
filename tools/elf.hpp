// What an ELF file says about itself: enough to know what can be loaded into it. The bytes may be anything.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tools::elf {

using Bytes = std::span<std::byte const>;

struct Facts {
    int bits = 0;  ///< 32 or 64
    bool little_endian = false;
    int machine = 0;          ///< e_machine
    std::string interpreter;  ///< the dynamic linker; empty: static. Read only for 64 bits and our byte order
};

/// Whether the file starts like an ELF file.
bool is_elf(Bytes file);
/// Local. Fails if the file ends before the end that its headers give.
tapioca::core::Result<Facts> read(Bytes file);
/// Whether `symbol` is defined in the file itself. A stripped program shows only what it exports.
bool defines(Bytes file, std::string_view symbol);
/// "64-bit AArch64", for messages.
std::string describe(Facts const& facts);

}  // namespace tools::elf
