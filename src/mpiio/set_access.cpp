#include "mpiio/set_access.hpp"

#include <exception>

#include <fmt/core.h>

#include "core/output.hpp"
#include "declared/file_state.hpp"
#include "mpiio/diagnostics.hpp"
#include "mpiio/error_class.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/sieve.hpp"

namespace tapioca::mpiio {

namespace {

/// Whether there is nothing to move, whatever the view is.
bool is_empty(DataAccess const& request)
{
    MPI_Count bytes = 0;
    if (request.count > 0 && request.type != MPI_DATATYPE_NULL) PMPI_Type_size_x(request.type, &bytes);
    return request.count == 0 || (request.count > 0 && request.type != MPI_DATATYPE_NULL && bytes == 0);
}

/// The error's text, whichever rank it was found on.
std::string without_rank(Error const& error)
{
    std::string text = error.what();
    auto const who = fmt::format(" rank {}:", error.rank());
    auto const at = text.find(who);
    return at == std::string::npos ? text : text.erase(at, who.size());
}

}  // namespace

SetAccess::SetAccess(ProgramFile& program, std::shared_ptr<declared::FileState> file)
    : program_(program), file_(std::move(file))
{
}

AccessOutcome SetAccess::access(DataAccess const& request)
{
    auto part = look_at(program_, request);
    if (!part.obstacle.empty()) {
        if (is_empty(request)) return {true, MPI_SUCCESS, 0};
        return {true, part.error, 0};
    }
    program_.calls.served(request.call);
    if (part.bytes == 0) return {true, MPI_SUCCESS, 0};
    try {
        auto const moved = move(request, part);
        if (!moved) return {true, failed_alone(moved.error()), 0};
        if (request.direction == Direction::read) part.unpack(request, *moved);
        move_pointer(program_, request, part);
        return {true, MPI_SUCCESS, *moved};
    } catch (std::exception const&) {
        return {true, MPI_ERR_NO_MEM, 0};
    }
}

/// A program that goes on after errors gets a few lines, and not one for each call.
bool SetAccess::is_new(std::string const& kind)
{
    constexpr std::size_t most = 8;
    std::lock_guard const lock(mutex_);
    return told_.size() < most && told_.insert(kind).second;
}

std::string SetAccess::line(std::string const& what) const
{
    return core::printable(fmt::format("tapioca: {}: {}", program_.opened.path, what));
}

void SetAccess::tell_alone(std::string const& kind, std::string const& what)
{
    if (is_new(kind) && file_->session->first_to_say(program_.opened.path + '\n' + kind)) tell(line(what));
}

int SetAccess::failed_alone(core::Failure const& failure)
{
    auto const error = class_of(failure);
    tell_alone(fmt::format("class {}", error), failure.text);
    return error;
}

int SetAccess::failed_together(Error const& error)
{
    if (program_.opened.first() && is_new(without_rank(error))) tell(error.what());
    return class_of(error);
}

int SetAccess::refuse(std::string const& what, bool together)
{
    auto const why = fmt::format("consists of subfiles: {} not supported", what);
    if (!together)
        tell_alone(what, why);
    else if (program_.opened.first() && is_new(what))
        tell(line(why));
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

/// Runs a collective call on the file, which throws the same error on all ranks.
int SetAccess::together(std::function<void()> const& call)
{
    try {
        call();
        return MPI_SUCCESS;
    } catch (Error const& error) {
        return failed_together(error);
    }
}

core::Result<std::int64_t> SetAccess::move(DataAccess const& request, PreparedAccess const& part)
{
    auto* const target = file_->target();
    if (!target) return tl::unexpected(file_->target_status().error());
    auto const variable = pattern::variable_of(part.access);
    if (request.direction == Direction::write) {
        part.pack(request);
        core::Status status;
        auto const store = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            if (status)
                status = target->write(offset,
                                       std::span<std::byte const>(part.data + place, static_cast<std::size_t>(length)));
        };
        for (auto const& layout : variable.layouts()) pattern::each_piece(layout, store);
        if (!status) return tl::unexpected(status.error());
        return part.bytes;
    }
    auto const size = target->size();
    if (!size) return tl::unexpected(size.error());
    Sieve sieve([&](std::int64_t begin, std::span<std::byte> to) { return load(*target, begin, to); },
                static_cast<std::int64_t>(*size), part.data);
    auto const take = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        sieve.take(offset, length, place);
    };
    for (auto const& layout : variable.layouts()) pattern::each_piece(layout, take);
    return sieve.finish();
}

AccessOutcome SetAccess::access_shared(DataAccess request)
{
    MPI_Offset place = 0;
    auto const& opened = program_.opened;
    if (!opened.alone())
        return {true, refuse("the shared file pointer, except of one rank or in ordered accesses, is", false), 0};
    if (PMPI_File_get_position_shared(opened.handle, &place) != MPI_SUCCESS)
        return {true, MPI_ERR_UNSUPPORTED_OPERATION, 0};
    request.offset = place;
    auto const outcome = access(request);
    if (outcome.error != MPI_SUCCESS) return outcome;
    auto const wanted = look_at(program_, request);
    PMPI_File_seek_shared(opened.handle, wanted.next(program_.view.etype_bytes()), MPI_SEEK_SET);
    return outcome;
}

int SetAccess::size(MPI_Offset& bytes)
{
    auto* const target = file_->target();
    auto const found = target ? target->size() : tl::unexpected(file_->target_status().error());
    if (!found) return failed_alone(found.error());
    bytes = static_cast<MPI_Offset>(*found);
    return MPI_SUCCESS;
}

int SetAccess::end(MPI_Offset& etypes)
{
    MPI_Offset bytes = 0;
    if (!program_.view.obstacle().empty()) return MPI_ERR_UNSUPPORTED_DATAREP;
    if (auto const error = size(bytes); error != MPI_SUCCESS) return error;
    auto const etype = program_.view.etype_bytes();
    MPI_Offset least = 0;  // the first etype that is not before the end lies in [least, most]
    MPI_Offset most = bytes / etype + 1;
    while (least < most) {
        auto const middle = least + (most - least) / 2;
        if (program_.view.tiles().offset_of(middle * etype) < bytes)
            least = middle + 1;
        else
            most = middle;
    }
    etypes = least;
    return MPI_SUCCESS;
}

int SetAccess::resize(MPI_Offset size, bool exactly)
{
    if (program_.opened.read_only()) return MPI_ERR_READ_ONLY;
    return together([&] { file_->resize(size, exactly); });
}

int SetAccess::sync()
{
    return together([&] { file_->sync(); });
}

}  // namespace tapioca::mpiio
