// The ELF reader: what it finds in this program itself, and that no damaged file makes it look outside of the bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include <elf.h>

#include "elf.hpp"

extern "C" int tapioca_elf_test_symbol()
{
    return 1;
}

namespace tools::elf {
namespace {

std::vector<std::byte> this_program()
{
    std::ifstream file("/proc/self/exe", std::ios::binary);
    std::vector<char> const text((std::istreambuf_iterator<char>(file)), {});
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

/// A small program: header, an interpreter, a table of one symbol.
std::vector<std::byte> small_program()
{
    struct Image {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        Elf64_Shdr sections[2];
        Elf64_Sym symbol;
        char interpreter[8];
        char strings[16];
    } image{};
    std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    image.header.e_ident[EI_DATA] = ELFDATA2LSB;
    image.header.e_machine = EM_X86_64;
    image.header.e_phoff = offsetof(Image, segment);
    image.header.e_phentsize = sizeof(Elf64_Phdr);
    image.header.e_phnum = 1;
    image.header.e_shoff = offsetof(Image, sections);
    image.header.e_shentsize = sizeof(Elf64_Shdr);
    image.header.e_shnum = 2;
    image.segment.p_type = PT_INTERP;
    image.segment.p_offset = offsetof(Image, interpreter);
    image.segment.p_filesz = sizeof image.interpreter;
    image.sections[0].sh_type = SHT_SYMTAB;
    image.sections[0].sh_offset = offsetof(Image, symbol);
    image.sections[0].sh_size = sizeof(Elf64_Sym);
    image.sections[0].sh_link = 1;
    image.sections[1].sh_type = SHT_STRTAB;
    image.sections[1].sh_offset = offsetof(Image, strings);
    image.sections[1].sh_size = sizeof image.strings;
    image.symbol.st_name = 1;
    image.symbol.st_shndx = 1;
    std::strcpy(image.interpreter, "/ld.so");
    std::strcpy(image.strings + 1, "MPI_Init");
    std::vector<std::byte> bytes(sizeof image);
    std::memcpy(bytes.data(), &image, sizeof image);
    return bytes;
}

TEST(Elf, SeesTheDynamicLinkerAndTheSymbolsOfThisProgram)
{
    auto const bytes = this_program();
    auto const facts = read(bytes);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->bits, 64);
    EXPECT_NE(facts->interpreter.find("ld"), std::string::npos);
    EXPECT_TRUE(defines(bytes, "tapioca_elf_test_symbol"));
    EXPECT_FALSE(defines(bytes, "MPI_Init"));
    EXPECT_FALSE(defines(bytes, "__libc_start_main")) << "used, but not defined here";
}

TEST(Elf, ReadsASmallProgram)
{
    auto const bytes = small_program();
    auto const facts = read(bytes);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->interpreter, "/ld.so");
    EXPECT_EQ(describe(*facts), "64-bit x86-64");
    EXPECT_TRUE(defines(bytes, "MPI_Init"));
    EXPECT_FALSE(defines(bytes, "MPI_Ini"));
}

TEST(Elf, ProgramsWithoutADynamicLinkerAreStatic)
{
    auto bytes = small_program();
    Elf64_Word const load = PT_NOTE;
    std::memcpy(bytes.data() + sizeof(Elf64_Ehdr), &load, sizeof load);
    auto const facts = read(bytes);
    ASSERT_TRUE(facts);
    EXPECT_TRUE(facts->interpreter.empty());
}

TEST(Elf, OtherClassesAndByteOrdersAreToldAndNotReadFurther)
{
    auto bytes = small_program();
    bytes[EI_CLASS] = std::byte{ELFCLASS32};
    bytes[EI_DATA] = std::byte{ELFDATA2MSB};
    bytes[18] = std::byte{0};
    bytes[19] = std::byte{EM_ARM};
    auto const facts = read(bytes);
    ASSERT_TRUE(facts);
    EXPECT_EQ(describe(*facts), "32-bit Arm");
    EXPECT_TRUE(facts->interpreter.empty());
    EXPECT_FALSE(defines(bytes, "MPI_Init"));
}

// Each file in a block of its own length, so that a sanitizer sees a read beyond it.
TEST(Elf, FilesCutShortAreDamaged)
{
    auto const whole = small_program();
    auto const needed = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        std::vector<std::byte> const bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        defines(bytes, "MPI_Init");
        EXPECT_TRUE(size >= needed || !read(bytes)) << size;
    }
    EXPECT_FALSE(is_elf({}));
}

TEST(Elf, DamagedBytesAreNeverReadBeyond)
{
    std::mt19937 random(1);
    auto const whole = small_program();
    int readable = 0;
    for (int i = 0; i < 3000; ++i) {
        auto bytes = whole;
        for (auto changes = random() % 8 + 1; changes > 0; --changes)
            bytes[4 + random() % (bytes.size() - 4)] = static_cast<std::byte>(random() % 3 == 0 ? 255 : random());
        bytes.resize(bytes.size() - random() % 16);
        readable += read(bytes) ? 1 : 0;
        defines(bytes, "MPI_Init");
    }
    EXPECT_GT(readable, 100);
}

}  // namespace
}  // namespace tools::elf
