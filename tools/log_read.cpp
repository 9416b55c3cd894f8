// tapioca log read: prints the requests of a finished or live log, or the data of one request.
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/core.h>

#include "core/output.hpp"
#include "log_verbs.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;

struct LogReading {
    std::string path;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint64_t> request;
    std::string output;
    bool follow = false;
};

core::Status write_out(std::vector<std::byte> const& data, std::string const& output)
{
    if (!output.empty()) return core::write_output(output, data);
    bool const written = std::fwrite(data.data(), 1, data.size(), stdout) == data.size();
    if (!written || std::fflush(stdout) != 0) return core::fail_errno(errno, "stdout");
    return {};
}

/// Prints the data of one request.
int read_data(tapioca::StageReader& reader, LogReading const& a)
{
    std::optional<tapioca::StagedRequest> found;
    int const status = each(reader, "read", [&](tapioca::StagedRequest const& request) {
        if (request.rank == *a.rank && request.number == *a.request) found = request;
    });
    if (!found)
        return status != 0
                   ? status
                   : fail_log("read", fmt::format("{}: rank {} has no request {}", a.path, *a.rank, *a.request), 1);
    auto const written = write_out(reader.data(*found), a.output);
    return written ? 0 : fail_log("read", written.error().text, 1);
}

/// Prints one line for each request; with --follow also for later ones, until the writers have ended.
int read_lines(tapioca::StageReader& reader, LogReading const& a)
{
    auto generation = std::optional<std::uint64_t>();
    auto const show = [&](tapioca::StagedRequest const& request) {
        if (a.rank && request.rank != *a.rank) return;
        if (generation && *generation != request.generation)
            fmt::print("generation {}: what was there before is in the file\n", request.generation);
        generation = request.generation;
        fmt::print("{}\n", to_text(request));
    };
    int status = 0;
    while (true) {
        bool const last = !a.follow || reader.finished();
        status = std::max(status, each(reader, "read", show));
        std::fflush(stdout);
        if (last) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace

int read_log(Words const& words)
{
    LogReading a;
    CLI::App app("The requests of a log, finished or live, or the data of one.");
    app.add_option("PATH", a.path, "a target, a directory of logs or a .meta file")->required();
    auto* const rank = app.add_option("--rank", a.rank, "show only requests of this rank")->option_text("R");
    auto* const request = app.add_option("--request", a.request, "show the data of this request, counted from 0")
                              ->option_text("N")
                              ->needs(rank);
    app.add_option("--output", a.output, "file for the data [stdout]")->option_text("FILE")->needs(request);
    app.add_flag("--follow", a.follow, "wait for further requests while the program runs")->excludes(request);
    if (auto const status = parse_log(app, "read", words)) return *status;
    try {
        tapioca::StageReader reader(a.path);
        for (auto const& missing : reader.missing()) fail_log("read", "not here: " + missing);
        return a.request ? read_data(reader, a) : read_lines(reader, a);
    } catch (tapioca::Error const& error) {
        return fail_log("read", text_of(error), 1);
    }
}

}  // namespace tools
