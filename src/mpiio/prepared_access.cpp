#include "mpiio/prepared_access.hpp"

#include <exception>
#include <new>
#include <utility>

#include "mpiio/datatype.hpp"
#include "mpiio/device_memory.hpp"
#include "mpiio/program_file.hpp"

namespace tapioca::mpiio {

namespace {

/// MPI has no function that tells whether a datatype is committed. A communication call with a type that is not fails,
/// and the error handler of `comm` decides how. The program's own communicators are not used for this: without one of
/// ours the type is taken to be committed.
bool is_committed(MPI_Datatype type, MPI_Comm comm)
{
    if (comm == MPI_COMM_SELF || comm == MPI_COMM_NULL) return true;
    char nothing = 0;
    int position = 0;
    return PMPI_Pack(&nothing, 0, type, &nothing, 0, &position, comm) == MPI_SUCCESS;
}

/// Sets the obstacle if no request can be served, whatever its arguments are.
void look_at_file(ProgramFile const& program, Direction direction, PreparedAccess& part)
{
    if (program.atomic) {
        part.obstacle = "atomic mode";
    } else if (!program.view.obstacle().empty()) {
        part.obstacle = program.view.obstacle();
        part.error = MPI_ERR_UNSUPPORTED_DATAREP;
    } else if (direction == Direction::write && program.opened.read_only()) {
        part.obstacle = "writing to a file opened for reading";
        part.error = MPI_ERR_READ_ONLY;
    } else if (direction == Direction::read && (program.opened.amode & MPI_MODE_WRONLY)) {
        part.obstacle = "reading from a file opened for writing";
        part.error = MPI_ERR_ACCESS;
    }
}

/// `comm`: the communicator of the file's channel, or none if it has no communicator yet. Throws if there is no memory.
PreparedAccess part_of(DataAccess const& request, ProgramView const& view, MPI_File handle, MPI_Comm comm)
{
    PreparedAccess part;
    auto const cannot = [&part](std::string why, int error = MPI_ERR_ARG) {
        part.obstacle = std::move(why);
        part.error = error;
        part.bytes = 0;
    };
    if (request.count < 0) return cannot("invalid arguments", MPI_ERR_COUNT), std::move(part);
    if (request.type == MPI_DATATYPE_NULL) return cannot("invalid arguments", MPI_ERR_TYPE), std::move(part);

    if (!is_committed(request.type, comm))
        return cannot("a datatype that is not committed", MPI_ERR_TYPE), std::move(part);
    MPI_Count bytes = 0;
    PMPI_Type_size_x(request.type, &bytes);
    if (__builtin_mul_overflow(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(request.count), &part.bytes))
        return cannot("invalid arguments"), std::move(part);

    if (request.offset)
        part.offset = *request.offset;
    else if (PMPI_File_get_position(handle, &part.offset) != MPI_SUCCESS)
        return cannot("no position"), std::move(part);
    std::int64_t from = 0;
    if (part.offset < 0 || part.bytes % view.etype_bytes() != 0 ||
        __builtin_mul_overflow(static_cast<std::int64_t>(part.offset), view.etype_bytes(), &from))
        return cannot("invalid arguments"), std::move(part);
    if (part.bytes == 0) return part;
    auto access = pattern::access_of(view.tiles(), from, part.bytes);
    if (!access) return cannot(access.error().text), std::move(part);
    part.access = std::move(*access);
    part.end = view.tiles().offset_of(from + part.bytes - 1) + 1;

    auto const element = datatype_of(request.type);
    if (!element) return cannot(element.error().text, MPI_ERR_TYPE), std::move(part);
    part.memory = pattern::Typemap::loop(request.count, element->extent, element->map);
    auto* const base = static_cast<std::byte*>(request.buffer);
    part.data = base + part.memory.begin();
    if (!part.data) return cannot("a buffer at no address", MPI_ERR_BUFFER), std::move(part);
    if (in_device_memory(part.data)) return cannot("a buffer in the memory of a GPU", MPI_ERR_BUFFER), std::move(part);
    if (part.memory.contiguous()) return part;
    part.packed.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(part.bytes)]);
    if (!part.packed) return cannot("no memory to pack the data", MPI_ERR_NO_MEM), std::move(part);
    part.data = part.packed.get();
    return part;
}

}  // namespace

void PreparedAccess::pack(DataAccess const& request) const
{
    if (packed) pattern::pack(memory, static_cast<std::byte const*>(request.buffer), 0, bytes, data);
}

void PreparedAccess::unpack(DataAccess const& request, std::int64_t count) const
{
    if (packed) pattern::unpack(memory, static_cast<std::byte*>(request.buffer), 0, count, data);
}

PreparedAccess look_at(ProgramFile const& program, DataAccess const& request)
try {
    PreparedAccess part;
    look_at_file(program, request.direction, part);
    if (!part.obstacle.empty()) return part;
    return part_of(request, program.view, program.opened.handle, program.channel->comm.get());
} catch (std::exception const& error) {  // most likely no memory; the other ranks must be told
    PreparedAccess part;
    part.obstacle = error.what();
    part.error = MPI_ERR_NO_MEM;
    return part;
}

bool is_simple(ProgramFile const& program, PreparedAccess const& part)
{
    return part.bytes == 0 || (program.view.is_simple() && part.in_one_piece());
}

void move_pointer(ProgramFile const& program, DataAccess const& request, PreparedAccess const& part)
{
    if (request.offset || part.bytes == 0) return;
    PMPI_File_seek(program.opened.handle, part.next(program.view.etype_bytes()), MPI_SEEK_SET);
}

}  // namespace tapioca::mpiio
