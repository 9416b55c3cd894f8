#include "mpiio/linked_functions.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <link.h>
#include <strings.h>

namespace tapioca::mpiio {

namespace {

/// The symbol may be spelled as in C or as by a Fortran compiler.
bool begins_an_access(char const* symbol)
{
    if (*symbol == 'P' || *symbol == 'p') ++symbol;
    constexpr std::string_view prefix = "mpi_file_";
    if ((*symbol != 'M' && *symbol != 'm') || ::strncasecmp(symbol, prefix.data(), prefix.size()) != 0) return false;
    symbol += prefix.size();
    auto const has = [&](char const* part) { return ::strcasestr(symbol, part) != nullptr; };
    bool const nonblocking = ::strncasecmp(symbol, "iwrite", 6) == 0 || ::strncasecmp(symbol, "iread", 5) == 0;
    return has("_begin") || (nonblocking && has("_all"));
}

/// The relocations in the dynamic section of a loaded object.
class Object {
public:
    explicit Object(dl_phdr_info const& info) : base_(info.dlpi_addr)
    {
        for (int i = 0; i < info.dlpi_phnum; ++i)
            if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
                look_at(reinterpret_cast<ElfW(Dyn) const*>(base_ + info.dlpi_phdr[i].p_vaddr));
    }

    /// Whether the object is linked to a library whose name contains `name`.
    [[nodiscard]] bool needs(char const* name) const
    {
        for (auto const* entry = dynamic_; entry && names_ && entry->d_tag != DT_NULL; ++entry)
            if (entry->d_tag == DT_NEEDED && std::strstr(names_ + entry->d_un.d_val, name)) return true;
        return false;
    }

    /// Whether the object refers to such a symbol. True if this is unknown.
    [[nodiscard]] bool refers_to(bool (*wanted)(char const*)) const
    {
        if (unknown_) return true;
        if (!symbols_ || !names_) return false;
        return any(relocations_, wanted) || any(of_functions_, wanted);
    }

private:
    struct SymbolTable {
        std::uintptr_t at = 0;
        std::size_t bytes = 0;
    };

    void look_at(ElfW(Dyn) const* entry)
    {
        dynamic_ = entry;
        for (; entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
            case DT_SYMTAB: symbols_ = reinterpret_cast<ElfW(Sym) const*>(place(entry)); break;
            case DT_STRTAB: names_ = reinterpret_cast<char const*>(place(entry)); break;
            case DT_RELA: relocations_.at = place(entry); break;
            case DT_RELASZ: relocations_.bytes = entry->d_un.d_val; break;
            case DT_JMPREL: of_functions_.at = place(entry); break;
            case DT_PLTRELSZ: of_functions_.bytes = entry->d_un.d_val; break;
            case DT_REL: unknown_ = true; break;  // used on old machines
            default: break;
            }
    }

    /// Some loaders have added the base to the addresses in this section, others have not.
    [[nodiscard]] std::uintptr_t place(ElfW(Dyn) const* entry) const
    {
        auto const address = static_cast<std::uintptr_t>(entry->d_un.d_ptr);
        return address < base_ ? base_ + address : address;
    }

    [[nodiscard]] bool any(SymbolTable const& table, bool (*wanted)(char const*)) const
    {
        auto const* const first = reinterpret_cast<ElfW(Rela) const*>(table.at);
        if (!first) return false;
        return std::any_of(first, first + table.bytes / sizeof *first, [&](ElfW(Rela) const& one) {
            constexpr unsigned shift = sizeof one.r_info == 8 ? 32 : 8;
            auto const symbol = one.r_info >> shift;
            return symbol != 0 && wanted(names_ + symbols_[symbol].st_name);
        });
    }

    std::uintptr_t base_;
    ElfW(Dyn) const* dynamic_ = nullptr;
    ElfW(Sym) const* symbols_ = nullptr;
    char const* names_ = nullptr;
    SymbolTable relocations_;
    SymbolTable of_functions_;
    bool unknown_ = false;
};

/// MPI libraries refer to all of their own functions, and this library does, too.
bool belongs_to_mpi(std::string_view path)
{
    auto const name = path.substr(path.rfind('/') + 1);
    return name.starts_with("libmpi") || name.starts_with("libtapioca_mpiio");
}

extern "C" int find_reference(dl_phdr_info* info, std::size_t /*size*/, void* found)
{
    if (belongs_to_mpi(info->dlpi_name)) return 0;
    Object const object(*info);
    bool const program = *info->dlpi_name == '\0';
    if ((!program && !object.needs("mpi")) || !object.refers_to(begins_an_access)) return 0;
    *static_cast<bool*>(found) = true;
    return 1;
}

}  // namespace

bool may_begin_accesses()
{
    static bool const may = [] {
        bool found = false;
        dl_iterate_phdr(find_reference, &found);
        return found;
    }();
    return may;
}

}  // namespace tapioca::mpiio
