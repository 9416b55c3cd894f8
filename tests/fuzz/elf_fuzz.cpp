// The ELF reader never looks outside of the bytes, and describes them in one line.
#include <cstring>
#include <vector>

#include "elf.hpp"
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    using tapioca::fuzz::claim;
    auto const file = std::as_bytes(std::span(data, size));
    auto const facts = tools::elf::read(file);
    bool const defined = tools::elf::defines(file, "MPI_Init");
    claim(!defined || facts, "only a program defines anything");
    if (!facts) {
        tapioca::fuzz::claim_one_line(facts.error());
        return 0;
    }
    claim(tools::elf::is_elf(file), "only an ELF file is read");
    claim(facts->bits == 32 || facts->bits == 64, "a program has 32 or 64 bits");
    claim(facts->interpreter.size() <= size, "names are part of the file");
    claim(!defined ||
              std::string_view(reinterpret_cast<char const*>(data), size).find("MPI_Init") != std::string_view::npos,
          "a symbol is part of the file");
    tapioca::fuzz::claim_one_line(tools::elf::describe(*facts));
    return 0;
}
