// tapioca info: what is known about this host, a platform and a directory's file system.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "core/descriptor.hpp"
#include "facts.hpp"
#include "machine/tier/hwloc.hpp"
#include "verb.hpp"

namespace tools {

namespace {

using tapioca::core::Result;
namespace machine = tapioca::machine;

Host find_host()
{
    Host host;
    char name[256] = "this host";
    (void)::gethostname(name, sizeof name - 1);
    host.name = name;
    auto const topology = machine::load_hwloc();
    if (!topology) return host;
    auto* const root = hwloc_get_root_obj(topology.get());
    char const* const told = hwloc_obj_get_info_by_name(root, "HostName");
    if (!hwloc_topology_is_thissystem(topology.get())) host.name = told ? told : "a machine described to hwloc";
    auto const count = [&](hwloc_obj_type_t type) {
        return std::max(0, hwloc_get_nbobjs_by_type(topology.get(), type));
    };
    host.sockets = count(HWLOC_OBJ_PACKAGE);
    host.cores = count(HWLOC_OBJ_CORE) > 0 ? count(HWLOC_OBJ_CORE) : count(HWLOC_OBJ_PU);
    host.numa_nodes = count(HWLOC_OBJ_NUMANODE);
    host.memory_bytes = static_cast<double>(root->total_memory);
    return host;
}

/// The storage of files in a directory, found with a file that has no name, or has one only for a moment.
Result<machine::Storage> storage_in(std::string const& directory)
{
    tapioca::core::Descriptor file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file) {
        auto name = directory + "/.tapioca-info-XXXXXX";
        file = tapioca::core::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
        if (!file) return tapioca::core::fail_errno(errno, "making a file in " + directory);
        ::unlink(name.c_str());
    }
    return machine::storage_of(file.get());
}

Result<machine::Machine> find_platform(std::string const& name)
{
    auto const text = machine::read_platform(name);
    if (!text) return tl::unexpected(text.error());
    return machine::parse_platform(text->text, text->path);
}

Result<Facts> gather(std::string const& platform, std::string const& directory)
{
    Facts facts;
    if (!platform.empty()) {
        auto found = find_platform(platform);
        if (!found) return tl::unexpected(found.error());
        facts.platform = std::move(*found);
        for (auto const& tier : facts.platform->tiers) facts.tiers.push_back(machine::with_assumptions(tier));
    }
    facts.host = find_host();
    facts.platform_tiers = !facts.tiers.empty();
    if (!facts.platform_tiers) facts.tiers = machine::find_tiers();
    if (directory.empty() && facts.platform && facts.platform->storage) {
        facts.storage = *facts.platform->storage;
        return facts;
    }
    std::error_code error;
    facts.directory = std::filesystem::canonical(directory.empty() ? "." : directory, error);
    if (error) return tapioca::core::fail_errno(error.value(), directory.empty() ? "." : directory);
    auto storage = storage_in(facts.directory);
    if (!storage) return tl::unexpected(storage.error());
    facts.storage = std::move(*storage);
    return facts;
}

std::vector<Use> info_uses()
{
    return {{"[--platform NAME] [--dir DIR] [--json]",
             "what planning knows: this host, its memory tiers, the network, the file system of DIR"}};
}

int run_info(Words const& words)
{
    std::string platform;
    std::string directory;
    bool json = false;
    CLI::App app("What planning knows: this host, its memory tiers, the network and a file system.");
    app.name("tapioca info");
    if (auto const* const set = std::getenv("TAPIOCA_PLATFORM")) platform = set;
    app.add_option("--platform", platform,
                   "a platform file, or the name of one that is shipped [TAPIOCA_PLATFORM, or none]")
        ->option_text("NAME");
    app.add_option("--dir", directory, "a directory on the file system to examine")
        ->check(CLI::ExistingDirectory)
        ->option_text("DIR [.]");
    app.add_flag("--json", json, "as JSON");
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return fail("info", error.what());
    }
    auto const facts = gather(platform, directory);
    if (!facts) return fail("info", facts.error().text);
    fmt::print("{}", json ? to_json(*facts) : to_text(*facts));
    return 0;
}

}  // namespace

extern constexpr Verb info = {.name = "info", .uses = info_uses, .run = run_info};

}  // namespace tools
