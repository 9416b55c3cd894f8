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

Avoid avoided(Stack stack)
{
    Avoid avoid;
    avoid.nonblocking_collectives = true;
    avoid.nested_bounds = true;
    if (stack == Stack::OpenMpiRomio) avoid.subcommunicators = avoid.sequential = true;
    if (stack == Stack::Ompio)
        avoid.short_reads = avoid.empty_types = avoid.failing_accesses = avoid.sequential = avoid.preallocate =
            avoid.equal_writes = true;
    return avoid;
}

char const* name_of(What what)
{
    static constexpr char const* names[] = {"error class",
                                            "count",
                                            "elements",
                                            "individual pointer",
                                            "shared pointer",
                                            "answers",
                                            "buffer",
                                            "bytes that were not read",
                                            "calls of the error handler",
                                            "file",
                                            "holes of the file"};
    return names[static_cast<int>(what)];
}

char const* known_deviation(Stack stack, Step const& step, int me, What what, Observed const& /*seen*/)
{
    auto const& part = step.parts[static_cast<std::size_t>(me)];
    bool const access = step.what == Do::Data && !step.fails;
    auto const bytes = access && part.type ? part.count * part.type->size : 0;
    bool const short_read = access && !step.write && step.features.find('E') != std::string::npos;
    bool const from_end = (step.what == Do::Seek || step.what == Do::SeekShared) && part.whence == MPI_SEEK_END;
    switch (what) {
    case What::Count:
    case What::Elements:
        if (short_read) return "the status of a read behind the end of the file counts what was asked for";
        if (access && step.how == How::Split && bytes == 0)
            return "the status of a split access without data is not set";
        return nullptr;
    case What::Beyond: return "bytes of the buffer that nothing was read for are overwritten";
    case What::Holes: return "holes of the file hold anything";
    case What::Position:
    case What::Shared:
        if (short_read) return "the pointer moves by what was read, not by what was asked for";
        if (from_end) return "seek from the end of the file goes elsewhere in a view";
        return nullptr;
    case What::Class:
    case What::Handler:
        if (step.what == Do::Preallocate && stack == Stack::Ompio) return "preallocate is an error";
        if (step.what == Do::Sync && step.features == "R") return "sync of a file opened for reading is an error";
        if (from_end && (step.features == "V" || stack == Stack::Ompio))
            return "seek from the end is an error where the view begins behind it";
        if (what == What::Handler && step.fails && step.how == How::Nonblocking)
            return "errors of nonblocking accesses do not reach the error handler";
        return nullptr;
    case What::Buffer:
    case What::File:
        if (stack == Stack::Ompio && step.features.find('O') != std::string::npos)
            return "collective accesses in which ranks meet in the file lose data";
        if (stack == Stack::Ompio && what == What::File && access && step.write && step.how != How::Blocking)
            return "a collective write loses data";
        return nullptr;
    default: return nullptr;
    }
}

}  // namespace fuzz
