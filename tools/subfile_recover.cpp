// tapioca subfile recover: completes a set whose job has ended without closing the file.
#include <fmt/core.h>
#include <unistd.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "stage/marker.hpp"
#include "subfile/recover.hpp"
#include "subfile_verbs.hpp"

namespace tools {

namespace core = tapioca::core;

namespace {

/// What is left to do for a file with logs.
void tell_logs(std::string const& path, bool staged)
{
    if (staged)
        fmt::print("{}: has data in logs: `tapioca log recover {}` writes it to the file\n", core::printable(path),
                   core::shell_word(path));
}

bool is_set(std::string const& path)
{
    auto const stub = tapioca::subfile::find_stub(path);
    return stub && *stub;
}

/// Whether there are subfiles of a file of this name, whatever has become of it.
bool has_directory(std::string const& path)
{
    namespace subfile = tapioca::subfile;
    auto const index = subfile::beside(path, subfile::directory_name(path)) + "/" + subfile::index_name;
    return ::access(index.c_str(), F_OK) == 0;
}

}  // namespace

int recover_subfiles(Words const& words)
{
    std::string path;
    CLI::App app("Completes a set of subfiles with everything that its job had noted when it ended.");
    app.add_option("PATH", path, "the file")->required();
    if (auto const status = parse_words(app, "subfile recover", words)) return *status;
    auto set = open_set(path);
    bool const no_stub = !set && (set.error().code == tapioca::Errc::io || set.error().code == tapioca::Errc::setting);
    bool const was_set = no_stub && !is_set(path) && (set.error().code == tapioca::Errc::io || has_directory(path));
    if (was_set) {
        auto const restored = tapioca::subfile::restore_stub(path);
        if (!restored) return fail_sub("subfile recover", path + ": " + restored.error().text, 1);
        fmt::print("{}: made the stub again\n", core::printable(path));
        set = open_set(path);
    }
    if (!set) return fail_sub("subfile recover", set.error().text, set.error().code == tapioca::Errc::setting ? 2 : 1);
    auto const found = tapioca::subfile::recover_set(set->path, set->stub);
    if (!found) return fail_sub("subfile recover", path + ": " + found.error().text, 1);
    auto const name = core::printable(path);
    bool const staged = tapioca::stage::has_marker(set->path);
    if (!*found) {
        fmt::print("{}: nothing to recover\n", name);
        tell_logs(path, staged);
        return 0;
    }
    auto const& what = **found;
    fmt::print("{}: recovered {} chunks with {} from {} journal{} of {}; the file has {} B\n", name, what.chunks,
               core::format_bytes(what.data_bytes), what.journals, what.journals == 1 ? "" : "s",
               core::printable(to_text(what.job)), what.size);
    if (what.lost > 0)
        fmt::print(
            "{}: {} chunks are in the journals, but not in the subfiles: the machine stopped before they were "
            "durable\n",
            name, what.lost);
    tell_logs(path, staged);
    return 0;
}

}  // namespace tools
