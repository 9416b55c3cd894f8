// tapioca subfile split: makes a set of subfiles of a plain file.
#include <filesystem>

#include <fmt/core.h>
#include <unistd.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "recover/progress.hpp"
#include "subfile/join.hpp"
#include "subfile/split.hpp"
#include "subfile_verbs.hpp"

namespace tools {

namespace core = tapioca::core;

int split_file(Words const& words)
{
    std::string path;
    std::uint32_t subfiles = 0;
    bool live = ::isatty(STDERR_FILENO) != 0;
    CLI::App app("Makes a set of subfiles of a plain file, which it replaces when the set is complete.");
    app.add_option("PATH", path, "the plain file")->required();
    app.add_option("--subfiles", subfiles, "into how many; each gets 1 MiB at least")->required();
    app.add_flag("--live", live, "redraw one line of progress instead of printing many");
    if (auto const status = parse_words(app, "subfile split", words)) return *status;
    if (subfiles < 1 || subfiles > tapioca::subfile::most_subfiles)
        return fail_sub("subfile split", fmt::format("--subfiles {}: expected a number from 1 to {}", subfiles,
                                                     tapioca::subfile::most_subfiles));
    std::error_code error;
    auto const bytes = std::filesystem::file_size(path, error);
    recover::Progress progress(true, live);
    bool begun = false;
    auto const facts = tapioca::subfile::split(tapioca::subfile::resolved(path), subfiles, [&](std::uint64_t part) {
        if (!begun) progress.begin("splitting", error ? 0 : bytes);
        begun = true;
        progress.add(part);
    });
    if (begun) progress.end();
    if (!facts && facts.error().code == tapioca::Errc::no_space)
        return fail_sub("subfile split",
                        facts.error().text + ": the file is as it was; the set needs as much room again", 1);
    if (!facts) return fail_sub("subfile split", facts.error().text, 1);
    fmt::print("{}: {} in {} subfile{}\n", core::printable(path), core::format_bytes(facts->bytes), facts->subfiles,
               facts->subfiles == 1 ? "" : "s");
    return 0;
}

}  // namespace tools
