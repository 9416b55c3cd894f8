#include "elf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <elf.h>
#include <fmt/core.h>

namespace tools::elf {

namespace {

using tapioca::Errc;
namespace core = tapioca::core;

constexpr bool we_are_little = std::endian::native == std::endian::little;

/// `count` bytes from `offset`, if the file has them.
std::optional<Bytes> cut(Bytes file, std::uint64_t offset, std::uint64_t count)
{
    if (offset > file.size() || count > file.size() - offset) return std::nullopt;
    return file.subspan(offset, count);
}

/// The `index`th entry of a table of T, whose entries are `stride` bytes apart.
template <class T>
std::optional<T> entry(Bytes file, std::uint64_t table, std::uint64_t stride, std::uint64_t index)
{
    if (stride < sizeof(T) || index > file.size() / stride || table > file.size()) return std::nullopt;
    auto const bytes = cut(file, table + index * stride, sizeof(T));
    if (!bytes) return std::nullopt;
    T value;
    std::memcpy(&value, bytes->data(), sizeof(T));
    return value;
}

/// The text at `offset`, up to its zero or the end of `strings`.
std::string_view text(Bytes strings, std::uint64_t offset)
{
    if (offset >= strings.size()) return {};
    auto const* const begin = reinterpret_cast<char const*>(strings.data()) + offset;
    return {begin, ::strnlen(begin, strings.size() - offset)};
}

bool is_ours(Facts const& facts)
{
    return facts.bits == 64 && facts.little_endian == we_are_little;
}

constexpr char const* cut_short = "its ELF headers promise more than the file holds";

}  // namespace

bool is_elf(Bytes file)
{
    return file.size() >= SELFMAG && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0;
}

core::Result<Facts> read(Bytes file)
{
    // e_machine is at the same place in both classes.
    if (!is_elf(file) || file.size() < offsetof(Elf64_Ehdr, e_version)) return core::fail(Errc::io, cut_short);
    Facts facts;
    auto const byte = [&](std::size_t at) { return std::to_integer<int>(file[at]); };
    facts.bits = byte(EI_CLASS) == ELFCLASS64 ? 64 : 32;
    facts.little_endian = byte(EI_DATA) == ELFDATA2LSB;
    auto const at = offsetof(Elf64_Ehdr, e_machine);
    facts.machine = facts.little_endian ? byte(at) + 256 * byte(at + 1) : 256 * byte(at) + byte(at + 1);
    if (!is_ours(facts)) return facts;

    auto const header = entry<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr), 0);
    if (!header) return core::fail(Errc::io, cut_short);
    for (unsigned i = 0; i < header->e_phnum; ++i) {
        auto const segment = entry<Elf64_Phdr>(file, header->e_phoff, header->e_phentsize, i);
        if (!segment) return core::fail(Errc::io, cut_short);
        if (segment->p_type == PT_LOAD && !cut(file, segment->p_offset, segment->p_filesz))
            return core::fail(Errc::io, cut_short);
        if (segment->p_type != PT_INTERP) continue;
        auto const path = cut(file, segment->p_offset, segment->p_filesz);
        if (!path) return core::fail(Errc::io, cut_short);
        facts.interpreter = text(*path, 0);
    }
    return facts;
}

bool defines(Bytes file, std::string_view symbol)
{
    auto const facts = read(file);
    auto const header = entry<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr), 0);
    if (!facts || !is_ours(*facts) || !header) return false;
    auto const section = [&](std::uint64_t i) {
        return entry<Elf64_Shdr>(file, header->e_shoff, header->e_shentsize, i);
    };
    for (unsigned i = 0; i < header->e_shnum; ++i) {
        auto const table = section(i);
        if (!table || (table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM)) continue;
        auto const names = section(table->sh_link);
        auto const symbols = cut(file, table->sh_offset, table->sh_size);
        auto const strings = names ? cut(file, names->sh_offset, names->sh_size) : std::nullopt;
        if (!symbols || !strings) continue;
        for (std::uint64_t k = 0; k < symbols->size() / sizeof(Elf64_Sym); ++k) {
            auto const found = entry<Elf64_Sym>(*symbols, 0, sizeof(Elf64_Sym), k);
            if (found && found->st_shndx != SHN_UNDEF && text(*strings, found->st_name) == symbol) return true;
        }
    }
    return false;
}

std::string describe(Facts const& facts)
{
    static constexpr std::array<std::pair<int, char const*>, 7> machines = {{{EM_386, "x86"},
                                                                             {EM_X86_64, "x86-64"},
                                                                             {EM_ARM, "Arm"},
                                                                             {EM_AARCH64, "AArch64"},
                                                                             {EM_PPC64, "POWER"},
                                                                             {EM_RISCV, "RISC-V"},
                                                                             {EM_S390, "S/390"}}};
    auto const known =
        std::find_if(machines.begin(), machines.end(), [&](auto const& m) { return m.first == facts.machine; });
    return fmt::format("{}-bit {}", facts.bits,
                       known == machines.end() ? fmt::format("machine {}", facts.machine) : known->second);
}

}  // namespace tools::elf
