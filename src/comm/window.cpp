#include "comm/window.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

Window::Window(Window&& other) noexcept
    : window_(std::exchange(other.window_, MPI_WIN_NULL)),
      comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      tells_posts_apart_(other.tells_posts_apart_)
{
}

Window& Window::operator=(Window&& other) noexcept
{
    std::swap(window_, other.window_);
    std::swap(comm_, other.comm_);
    std::swap(tells_posts_apart_, other.tells_posts_apart_);
    return *this;
}

core::Result<Window> Window::create(MPI_Comm comm, std::byte* memory, std::uint64_t bytes)
{
    Waiting const waiting("the other ranks to make a window");
    // Here, and only here, an error must be returned instead of ending the job.
    Window window;
    MPI_Comm_dup(comm, &window.comm_);
    MPI_Comm_set_errhandler(window.comm_, MPI_ERRORS_RETURN);
    auto const code =
        MPI_Win_create(memory, static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, window.comm_, &window.window_);
    core::Status status;
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(code, text, &length);
        window.window_ = MPI_WIN_NULL;
        status =
            core::fail(Errc::unsupported, "MPI_Win_create: " + std::string(text, static_cast<std::size_t>(length)));
    }
    auto const agreed = agree(comm, status);
    if (!agreed) {
        MPI_Comm_free(&window.comm_);
        return tl::unexpected(agreed.error());
    }
    MPI_Win_set_errhandler(window.window_, MPI_ERRORS_ARE_FATAL);
    enter({window.window_, window.comm_});
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(version, &length);
    window.tells_posts_apart_ = std::string_view(version).starts_with("Open MPI");
    return window;
}

void Window::free()
{
    if (window_ == MPI_WIN_NULL || !mpi_is_active()) return;
    Waiting const waiting("the other ranks to give their window back");
    strike_out(window_);
    MPI_Win_free(&window_);
    MPI_Comm_free(&comm_);
}

void Window::tear()
{
    if (window_ != MPI_WIN_NULL && mpi_is_active()) comm::tear(window_);
}

namespace {

/// Makes groups that exist only during the call.
template <class Call>
void with_group(MPI_Win window, std::vector<int> const& ranks, Call call)
{
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Win_get_group(window, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    call(some);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

}  // namespace

void Window::post(std::vector<int> const& origins)
{
    Waiting const waiting("the ranks that put into this one's memory");
    with_group(window_, origins, [this](MPI_Group group) { MPI_Win_post(group, 0, window_); });
}

bool Window::test()
{
    int flag = 0;
    MPI_Win_test(window_, &flag);
    return flag != 0;
}

void Window::start(std::vector<int> const& targets)
{
    Waiting const waiting("an aggregator to open its memory");
    with_group(window_, targets, [this](MPI_Group group) { MPI_Win_start(group, 0, window_); });
}

void Window::complete()
{
    Waiting const waiting("an aggregator to take what was put");
    MPI_Win_complete(window_);
}

void Window::fence(RowPosition row)
{
    int const what = row == RowPosition::first ? MPI_MODE_NOPRECEDE : row == RowPosition::last ? MPI_MODE_NOSUCCEED : 0;
    Waiting const waiting("the other ranks to end an epoch");
    MPI_Win_fence(what, window_);
}

void Window::put(std::span<std::byte const> bytes, int to, std::uint64_t at)
{
    auto const count = static_cast<int>(bytes.size());
    MPI_Put(bytes.data(), count, MPI_BYTE, to, static_cast<MPI_Aint>(at), count, MPI_BYTE, window_);
}

void Window::get(std::span<std::byte> bytes, int from, std::uint64_t at)
{
    auto const count = static_cast<int>(bytes.size());
    MPI_Get(bytes.data(), count, MPI_BYTE, from, static_cast<MPI_Aint>(at), count, MPI_BYTE, window_);
}

}  // namespace tapioca::comm
