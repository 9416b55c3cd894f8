// Accesses at the shared pointer in the order of the ranks: computes where each rank's part begins.
#include "comm/team.hpp"
#include "mpiio/handle.hpp"
#include "mpiio/mpi_functions.hpp"

namespace tapioca::mpiio {

namespace {

/// The bytes of a request; 0 if its arguments are wrong, which the ranks then find out together.
std::int64_t bytes_of(DataAccess const& request)
{
    if (request.count < 0 || request.type == MPI_DATATYPE_NULL) return 0;
    MPI_Count each = 0;
    std::int64_t bytes = 0;
    PMPI_Type_size_x(request.type, &each);
    bool const fits =
        !__builtin_mul_overflow(static_cast<std::int64_t>(each), static_cast<std::int64_t>(request.count), &bytes);
    return fits && bytes > 0 ? bytes : 0;
}

}  // namespace

std::optional<Handle::OrderedPlace> Handle::place_in_order(DataAccess const& request)
{
    Within const within;
    finish_pending();
    watch(name(request.call).data());
    if (!set() && (has_log() || opened().alone() || program_.atomic || !agree_to_serve())) {
        calls().passed(request.call);
        return std::nullopt;
    }
    // No rank passes this point before all have arrived, so no earlier access moves the pointer after it was read.
    auto const comm = program_.channel->comm.get();
    auto const [before, total] = comm::prefix_and_total(comm, bytes_of(request));
    MPI_Offset pointer = -1;
    if (opened().first() && PMPI_File_get_position_shared(opened().handle, &pointer) != MPI_SUCCESS) pointer = -1;
    auto const begin = comm::tell(comm, pointer);
    if (begin < 0) {
        calls().passed(request.call);
        return std::nullopt;
    }
    auto const etype = program_.view.etype_bytes();  // the same on all ranks if the shared pointer is used
    return OrderedPlace{begin + before / etype, begin + total / etype};
}

int Handle::end_for_all(MPI_Offset& etypes)
{
    auto const comm = steps_.file().session->team().all();
    auto const error = comm::tell(comm, opened().first() ? set()->end(etypes) : MPI_SUCCESS);
    etypes = comm::tell(comm, etypes);
    return static_cast<int>(error);
}

std::string Handle::why_not_nonblocking() const
{
    if (!program_.off.empty()) return program_.off;
    if (program_.atomic) return "atomic mode";
    if (nonblocking_) return "the file's mode";
    return "a nonblocking collective call on several nodes, of too many files at a time, or with settings that only "
           "blocking calls can have";
}

}  // namespace tapioca::mpiio
