// tapioca-calibrate: the MPI program behind `tapioca calibrate`, which can also be started with any launcher.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "core/output.hpp"
#include "findings.hpp"
#include "settings/settings.hpp"

namespace {

namespace comm = tapioca::comm;
namespace core = tapioca::core;
namespace engine = tapioca::engine;
namespace machine = tapioca::machine;

struct CalibrateArguments {
    std::string platform;
    std::string directory = ".";
    std::vector<std::string> tiers;
    std::string output = "platform.toml";
    bool force = false;
    bool quick = false;
    bool live = false;  // redraw the progress line
    bool parse_only = false;
};

void add_options(CLI::App& app, CalibrateArguments& a)
{
    app.add_option("--platform", a.platform,
                   "how the nodes are connected: a platform file, or the name of a shipped one")
        ->option_text("NAME [detected]");
    app.add_option("--dir", a.directory, "a directory on the file system to measure, which all nodes share")
        ->option_text("DIR [.]");
    app.add_option("--tier", a.tiers, "a tier to measure in addition to those that are detected, such as ssd:/scratch")
        ->option_text("TIER ...")
        ->expected(1)
        ->take_all();
    app.add_option("--output", a.output, "the platform file to write")->option_text("FILE [platform.toml]");
    app.add_flag("--force", a.force, "replace FILE if it exists");
    app.add_flag("--quick", a.quick, "measure less data with fewer repetitions, for a first idea");
    app.add_flag("--live", a.live, "redraw one progress line instead of printing many");
    app.add_flag("--parse-only", a.parse_only)->group("");  // used by `tapioca calibrate` before it starts the ranks
}

core::Status parse_file(std::string const& name)
{
    auto const file = machine::read_platform(name);
    if (!file) return tl::unexpected(file.error());
    auto const parsed = machine::parse_platform(file->text, file->path);
    return parsed ? core::Status() : tl::unexpected(parsed.error());
}

core::Status check_output(CalibrateArguments const& a)
{
    if (!a.force && ::access(a.output.c_str(), F_OK) == 0)
        return core::fail(tapioca::Errc::setting,
                          fmt::format("--output: {} already exists: use --force to replace it", a.output));
    auto const parent = std::filesystem::path(a.output).parent_path();
    if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
        return core::fail_errno(errno, "--output: cannot write " + a.output);
    return {};
}

/// Checks what can be checked without the other ranks.
core::Status check(CalibrateArguments const& a)
{
    std::error_code ignored;
    if (!std::filesystem::is_directory(a.directory, ignored))
        return core::fail(tapioca::Errc::not_found, fmt::format("--dir: {} is not a directory", a.directory));
    if (!a.platform.empty())
        if (auto parsed = parse_file(a.platform); !parsed) return parsed;
    return check_output(a);
}

std::string host_name()
{
    char name[256] = "a host";
    (void)::gethostname(name, sizeof name - 1);
    return name;
}

std::string today()
{
    auto const now = std::time(nullptr);
    char text[32] = {};
    (void)std::strftime(text, sizeof text, "%F", std::localtime(&now));
    return text;
}

/// Writes a file that is complete or does not exist. It is read back as a job would read it before it gets its name.
core::Status write_platform(CalibrateArguments const& a, std::string const& text)
{
    auto const draft = fmt::format("{}.{}.toml", a.output, ::getpid());
    auto* const file = std::fopen(draft.c_str(), "wxe");
    if (!file) return core::fail_errno(errno, "writing " + draft);
    bool const written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    int error = written ? 0 : errno;
    if (std::fclose(file) != 0 && error == 0) error = errno;
    core::Status status;
    if (error != 0) status = core::fail_errno(error, "writing " + a.output);
    if (status) status = parse_file(draft);
    if (status) status = check_output(a);  // another process may have created it meanwhile
    if (status && std::rename(draft.c_str(), a.output.c_str()) != 0)
        status = core::fail_errno(errno, "writing " + a.output);
    if (!status) ::unlink(draft.c_str());
    return status;
}

/// Tiers that were asked for must have been measured; tiers that were only found need not.
core::Status check_wishes(calibrate::Findings const& findings, std::vector<std::string> const& wishes)
{
    auto const& tiers = findings.around.machine->tiers;
    for (std::size_t i = 0; i < tiers.size(); ++i)
        if (findings.tiers[i].nodes == 0 && std::find(wishes.begin(), wishes.end(), tiers[i].name) != wishes.end())
            return core::fail(tapioca::Errc::io, findings.tiers[i].why);
    return {};
}

/// Measures everything. Collective; the result is on every rank.
core::Result<calibrate::Findings> measure(calibrate::Crew const& crew, CalibrateArguments const& a,
                                          std::string const& platform)
{
    calibrate::Findings findings;
    auto around = engine::look_around(crew.team(), {platform, ""});
    if (!around) return tl::unexpected(around.error());
    around = calibrate::with_tiers(crew, std::move(*around), a.tiers);
    if (!around) return tl::unexpected(around.error());
    findings.around = std::move(*around);
    findings.ranks = crew.team().size();
    std::error_code error;  // the target comes first, since errors are most likely there
    auto const full = std::filesystem::canonical(a.directory, error);
    findings.directory = comm::broadcast(crew.team().all(), error ? a.directory : full.string());
    auto target = calibrate::measure_target(crew, findings.directory);
    if (!target) return tl::unexpected(target.error());
    findings.target = std::move(*target);
    findings.links = calibrate::measure_links(crew, *findings.around.machine->topology, findings.around.where);
    findings.tiers = calibrate::measure_tiers(crew, findings.around);
    if (auto const granted = check_wishes(findings, a.tiers); !granted) return tl::unexpected(granted.error());
    return findings;
}

/// Collective. The same result on every rank.
core::Status run(CalibrateArguments const& a)
{
    core::Result<tapioca::settings::Settings> settings;
    if (comm::world_rank() == 0) settings = tapioca::settings::resolve({}, {}, tapioca::settings::read_environment());
    comm::Team const team(MPI_COMM_WORLD, settings ? settings->options.ranks_per_node.value_or(0) : 0);
    core::Status status;
    std::string platform = a.platform;
    if (team.rank() == 0) {
        status = settings ? check(a) : tl::unexpected(settings.error());
        if (settings && platform.empty()) platform = settings->options.platform.value_or("");
    }
    if (status = comm::agree(team.all(), status); !status) return status;
    calibrate::Crew const crew(team, a.live, a.quick);
    auto const findings = measure(crew, a, comm::broadcast(team.all(), platform));
    crew.done();
    if (!findings) return tl::unexpected(findings.error());
    if (team.rank() == 0) {
        fmt::print("{}\n", calibrate::summary(*findings));
        std::fflush(stdout);
        status = write_platform(a, calibrate::platform_text(*findings, host_name(), today()));
        if (status)
            fmt::print("wrote     {}\n          to use it: export TAPIOCA_PLATFORM={}\n", a.output,
                       core::shell_word(std::filesystem::absolute(a.output).string()));
    }
    return comm::agree(team.all(), status);
}

int fail(std::string const& what)
{
    fmt::print(stderr, "tapioca-calibrate: {}\n", what);
    return 2;
}

}  // namespace

int main(int argc, char** argv)
{
    CalibrateArguments a;
    CLI::App app("Measures links, tiers and a file system, and writes a platform file for TAPIOCA_PLATFORM.");
    app.name("tapioca-calibrate");
    add_options(app, a);
    std::string wrong;
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        wrong = error.what();
    }
    if (std::find(argv, argv + argc, std::string_view("--parse-only")) != argv + argc) {
        if (!wrong.empty()) return fail(wrong);
        auto const fine = check(a);
        return fine ? 0 : fail(fine.error().text);
    }

    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int result = 0;
    try {
        auto const status = wrong.empty() ? run(a) : core::fail(tapioca::Errc::setting, wrong);
        if (!status) {
            result = status.error().code == tapioca::Errc::setting ? 2 : 1;
            if (comm::world_rank() == 0) fail(status.error().text);
        }
    } catch (std::exception const& error) {  // an error of this rank alone, such as lack of memory
        fail(error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return result;
}
