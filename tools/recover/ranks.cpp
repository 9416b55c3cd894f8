#include "ranks.hpp"

#include <exception>

#include <fmt/core.h>
#include <mpi.h>

#include "comm/team.hpp"
#include "core/output.hpp"

namespace recover {

namespace {

int fail(std::string const& name, std::string const& what, int status)
{
    fmt::print(stderr, "{}: {}\n", name, tapioca::core::printable(what));
    return status;
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv)
{
    bool parse_only = false;
    app.add_flag("--parse-only", parse_only)->group("");
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return fail(app.get_name(), error.what(), 2);
    }
    return parse_only ? std::optional(0) : std::nullopt;
}

int on_all_ranks(std::string const& name, int argc, char** argv, std::function<tapioca::core::Result<int>()> const& run)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int result = 0;
    try {
        auto const done = run();
        result = done ? *done : 1;
        if (!done && tapioca::comm::world_rank() == 0) fail(name, done.error().text, 1);
    } catch (std::exception const& error) {  // an error of this process alone, such as lack of memory
        fail(name, error.what(), 1);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return result;
}

}  // namespace recover
