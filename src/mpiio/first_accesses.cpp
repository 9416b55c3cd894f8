#include "mpiio/first_accesses.hpp"

#include <exception>
#include <memory>

#include "comm/own_communicators.hpp"
#include "comm/team.hpp"
#include "comm/watchdog.hpp"
#include "mpiio/call_names.hpp"
#include "mpiio/program_file.hpp"

namespace tapioca::mpiio {

namespace {

constexpr double bytes_a_piece = 256;  // bytes that an MPI library moves in the time that one piece costs
constexpr unsigned worth_it = 1U << 31;

struct Told {
    std::uint64_t bits;
    pattern::Summary parts;
};

extern "C" void combine_told(void* in, void* inout, int* count, MPI_Datatype* /*type*/)
{
    auto const* const from = static_cast<Told const*>(in);
    auto* const to = static_cast<Told*>(inout);
    for (int i = 0; i < *count; ++i) {
        to[i].bits |= from[i].bits;
        to[i].parts.add(from[i].parts);
    }
}

/// MPI libraries miscount a read beyond the end of the file.
bool is_within(ProgramFile const& program, PreparedAccess const& part)
{
    MPI_Offset size = 0;
    return PMPI_File_get_size(program.opened.handle, &size) == MPI_SUCCESS && part.end <= size;
}

}  // namespace

bool FirstAccesses::is_worth_it(ProgramFile const& program, DataAccess const& request, std::uint64_t enough)
try {
    part_ = {};
    if (over_ || ++accesses_ > most || !is_blocking_collective(request.call)) return true;
    auto const part = look_at(program, request);
    bytes_ += static_cast<double>(part.bytes) + bytes_a_piece * static_cast<double>(part.access.shape.pieces());
    if (bytes_ >= static_cast<double>(enough) || !is_simple(program, part)) return true;
    if (part.bytes == 0) return false;
    if (request.direction == Direction::read && !is_within(program, part)) return true;
    part_ = pattern::summarise({std::make_shared<pattern::Variable const>(pattern::variable_of(part.access))});
    return false;
} catch (std::exception const&) {  // no memory; the engine will report it
    part_ = {};
    return true;
}

unsigned FirstAccesses::unite(MPI_Comm comm, unsigned bits, bool worth)
{
    constexpr char const* others = "the other ranks' first access";
    if (over_) return comm::unite(comm, bits, others);
    comm::Waiting const waiting(others);
    Told told{bits | (worth ? worth_it : 0U), part_};
    comm::Team::reduce(comm, &told, sizeof told, 1, combine_told);
    auto const all = static_cast<unsigned>(told.bits);
    over_ = (all & worth_it) != 0 || (told.parts.bytes > 0 && !told.parts.dense());
    return all & ~worth_it;
}

}  // namespace tapioca::mpiio
