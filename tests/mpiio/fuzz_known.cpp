// See fuzz_known.hpp.
#include "fuzz_known.hpp"

#include <cstdlib>
#include <cstring>

namespace fuzz {

Stack stack_at_hand()
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    if (std::strstr(version, "MPICH") != nullptr) return Stack::Mpich;
    auto const* io = std::getenv("OMPI_MCA_io");
    return io != nullptr && std::strstr(io, "romio") != nullptr ? Stack::OpenMpiRomio : Stack::Ompio;
}

char const* name_of(Stack stack)
{
    return stack == Stack::Mpich ? "MPICH" : stack == Stack::Ompio ? "Open MPI, OMPIO" : "Open MPI, ROMIO";
}

bool makes_subfiles()
{
    return std::getenv("TAPIOCA_SUBFILE") != nullptr;
}

Avoid avoided(Stack stack)
{
    Avoid avoid;
    if (stack != Stack::Ompio) avoid.odd_views = avoid.pointers = true;
    if (stack == Stack::Mpich) avoid.types_freed_early = true;
    if (stack == Stack::OpenMpiRomio) avoid.nonblocking_collectives = avoid.subcommunicators = avoid.sequential = true;
    if (stack == Stack::Ompio)
        avoid.short_reads = avoid.empty_types = avoid.failing_accesses = avoid.sequential = avoid.preallocate =
            avoid.meeting = true;
    bool const staged = std::getenv("TAPIOCA_STAGE") != nullptr;
    // What the library refuses on a set of subfiles.
    avoid.atomicity = avoid.external32 = avoid.shared_alone = avoid.without_mpi = avoid.cuts_beside = makes_subfiles();
    avoid.sequential = avoid.sequential || makes_subfiles();
    avoid.serves_ordered = !staged;
    avoid.serves_nonblocking = !staged && std::getenv("TAPIOCA_RANKS_PER_NODE") == nullptr;  // all are on one node
    return avoid;
}

bool may_come_between(Stack stack, Step const& step)
{
    if (stack != Stack::Ompio) return true;
    return step.what == Do::Data || step.what == Do::Query || step.what == Do::View || step.what == Do::Seek;
}

namespace {

/// In 1 of some 300 cases, never in the same one twice, with contiguous views and memory too.
bool ompio_may_lose(Stack stack, Step const& step)
{
    return stack == Stack::Ompio && step.what == Do::Data && !step.fails && step.write && step.how != How::Blocking;
}

/// In 1 of some 800 cases, always the same.
bool old_romio_misplaces(Stack stack, Step const& step)
{
    return stack == Stack::OpenMpiRomio && step.what == Do::Data && !step.fails &&
           step.features.find_first_of("mF") != std::string::npos;
}

}  // namespace

bool by_chance(Stack stack, Step const& step, What what)
{
    bool const nothing = step.features.find('0') != std::string::npos;
    if (what == What::Count || what == What::Elements)  // a status that nobody sets
        return stack != Stack::Ompio && step.how == How::Split && nothing;
    if (what == What::File) return ompio_may_lose(stack, step);
    return what == What::Unread || what == What::Holes || (what == What::Position && step.wild_view);
}

char const* known_deviation(Stack stack, Step const& step, int me, What what)
{
    auto const& part = step.parts[static_cast<std::size_t>(me)];
    bool const access = step.what == Do::Data && !step.fails;
    auto const bytes = access && part.type ? part.count * part.type->size : 0;
    bool const romio = stack != Stack::Ompio;
    bool const short_read = access && !step.write && part.moved < bytes;
    bool const from_end = (step.what == Do::Seek || step.what == Do::SeekShared) && part.whence == MPI_SEEK_END;
    switch (what) {
    case What::Count:
    case What::Elements:
        if (short_read) return "the status of a read behind the end of the file counts what was asked for";
        if (romio && access && step.how == How::Split && bytes == 0)
            return "the status of a split access without data is not set";
        return nullptr;
    case What::Unread: return "bytes of the buffer that nothing was read for are overwritten";
    case What::Holes: return "holes of the file hold anything";
    case What::Position:
        if (romio && step.wild_view) return "the individual pointer is lost in views of types of types with set bounds";
        if (romio && short_read && step.where == Where::Individual)
            return "the pointer moves by what was read, not by what was asked for";
        if (from_end) return "seek from the end of the file goes elsewhere in a view";
        if (romio && access && step.where == Where::Individual && step.features.find('F') != std::string::npos)
            return "the individual pointer is lost in some views of nested types";
        return nullptr;
    case What::Shared:
        if (from_end) return "seek from the end of the file goes elsewhere in a view";
        return nullptr;
    case What::Class:
    case What::Handler:
        if (step.what == Do::Sync && step.features == "R") return "sync of a file opened for reading is an error";
        if (from_end && (!romio || step.features == "V"))
            return "seek from the end is an error where the view begins behind it";
        if (stack == Stack::Mpich && what == What::Handler && step.fails && step.how == How::Nonblocking)
            return "errors of nonblocking accesses do not reach the error handler";
        return nullptr;
    case What::Buffer:
    case What::File:
        if (what == What::File && ompio_may_lose(stack, step)) return "a collective write loses data now and then";
        if (old_romio_misplaces(stack, step)) return "data of nested types with gaps goes elsewhere";
        return nullptr;
    default: return nullptr;
    }
}

}  // namespace fuzz
