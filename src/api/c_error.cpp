// Errors for C: codes, and the last failure of each thread in full.
#include <atomic>
#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/core.h>

#include "api/c_face.hpp"

namespace tapioca::c {

namespace {

struct LastFailure {
    int code = TAPIOCA_SUCCESS;
    int rank = -1;
    int sys_errno = 0;
    std::string path;
    std::string text;
};

thread_local LastFailure last_failure;

int keep(int code, int rank, int sys_errno, std::string const& path, char const* text) noexcept
{
    last_failure.code = code;
    last_failure.rank = rank;
    last_failure.sys_errno = sys_errno;
    try {
        last_failure.path = path;
        last_failure.text = text;
    } catch (...) {  // no memory for the text: only the code is kept
        last_failure.path.clear();
        last_failure.text.clear();
    }
    return code;
}

// The codes of C are the numbers of Errc.
static_assert(TAPIOCA_SUCCESS == static_cast<int>(Errc::ok));
static_assert(TAPIOCA_ERR_INVALID_ARGUMENT == static_cast<int>(Errc::invalid_argument));
static_assert(TAPIOCA_ERR_INVALID_STATE == static_cast<int>(Errc::invalid_state));
static_assert(TAPIOCA_ERR_SETTING == static_cast<int>(Errc::setting));
static_assert(TAPIOCA_ERR_MISMATCH == static_cast<int>(Errc::mismatch));
static_assert(TAPIOCA_ERR_NOT_FOUND == static_cast<int>(Errc::not_found));
static_assert(TAPIOCA_ERR_PERMISSION == static_cast<int>(Errc::permission));
static_assert(TAPIOCA_ERR_IS_DIRECTORY == static_cast<int>(Errc::is_directory));
static_assert(TAPIOCA_ERR_NO_SPACE == static_cast<int>(Errc::no_space));
static_assert(TAPIOCA_ERR_IO == static_cast<int>(Errc::io));
static_assert(TAPIOCA_ERR_MEMORY == static_cast<int>(Errc::memory));
static_assert(TAPIOCA_ERR_UNSUPPORTED == static_cast<int>(Errc::unsupported));

}  // namespace

std::uintptr_t next_number()
{
    static std::atomic<std::uintptr_t> next{0x7461'7069'0000'0001};  // a stray pointer hardly has such a value
    return next++;
}

int remember() noexcept
{
    try {
        throw;
    } catch (Error const& error) {
        return keep(static_cast<int>(error.code()), error.rank(), error.sys_errno(), error.path(), error.what());
    } catch (std::bad_alloc const&) {
        return keep(TAPIOCA_ERR_MEMORY, -1, ENOMEM, {}, "tapioca: out of memory");
    } catch (std::length_error const& error) {
        return keep(TAPIOCA_ERR_MEMORY, -1, ENOMEM, {}, error.what());
    } catch (std::system_error const& error) {
        return keep(TAPIOCA_ERR_MEMORY, -1, error.code().value(), {}, error.what());
    } catch (std::exception const& error) {
        return keep(TAPIOCA_ERR_INTERNAL, -1, 0, {}, error.what());
    } catch (...) {
        return keep(TAPIOCA_ERR_INTERNAL, -1, 0, {}, "tapioca: unknown failure");
    }
}

void refuse(Errc code, char const* call, std::string const& what)
{
    throw Error(code, -1, 0, "", fmt::format("tapioca: {}: {}", call, what));
}

void agree(TAPIOCA_File_s& file, char const* call, core::Status const& local)
{
    auto& state = api::Internals::of(file.file);
    state.require_open(call);
    state.raise_if(call, state.session->agreement().agree(local));
}

core::Status not_null(void const* pointer, char const* what)
{
    if (pointer) return {};
    return core::fail(Errc::invalid_argument, fmt::format("{} is null", what));
}

void assign(TAPIOCA_Moved* out, Moved const& moved)
{
    if (!out) return;
    out->bytes = static_cast<std::int64_t>(moved.bytes);
    out->overlapped_bytes = static_cast<std::int64_t>(moved.overlapped_bytes);
}

}  // namespace tapioca::c

char const* TAPIOCA_Error_text(int code)
{
    switch (code) {
    case TAPIOCA_SUCCESS: return "success";
    case TAPIOCA_ERR_INVALID_ARGUMENT: return "an argument that cannot be right";
    case TAPIOCA_ERR_INVALID_STATE: return "a call at the wrong time";
    case TAPIOCA_ERR_SETTING: return "an unknown or malformed setting";
    case TAPIOCA_ERR_MISMATCH: return "ranks do not agree";
    case TAPIOCA_ERR_NOT_FOUND: return "no such file or directory";
    case TAPIOCA_ERR_PERMISSION: return "permission denied";
    case TAPIOCA_ERR_IS_DIRECTORY: return "is a directory";
    case TAPIOCA_ERR_NO_SPACE: return "no space left";
    case TAPIOCA_ERR_IO: return "the file system failed";
    case TAPIOCA_ERR_MEMORY: return "not enough memory";
    case TAPIOCA_ERR_UNSUPPORTED: return "not supported by this version";
    case TAPIOCA_ERR_INTERNAL: return "a defect of the library";
    default: return "not an error code of TAPIOCA";
    }
}

char const* TAPIOCA_Last_error(void)
{
    return tapioca::c::last_failure.text.c_str();
}

int TAPIOCA_Last_failure(TAPIOCA_Failure* failure)
{
    if (!failure) return TAPIOCA_ERR_INVALID_ARGUMENT;  // keeps the failure that was asked for
    auto const& last = tapioca::c::last_failure;
    *failure = {last.code, last.rank, last.sys_errno, last.path.c_str(), last.text.c_str()};
    return TAPIOCA_SUCCESS;
}
