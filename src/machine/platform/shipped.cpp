// Finds platform files: at a path, or with the library.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/machine.hpp"

namespace tapioca::machine {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_platform_file = 64 * core::MiB;

/// The directory next to the library or program that contains this code, wherever it has been moved: lib/../share, or
/// lib/triplet/../../share. Empty if there is none.
fs::path shipped_directory()
{
    static char const here = 0;
    Dl_info info = {};
    std::error_code ignored;
    fs::path object;
    if (dladdr(&here, &info) != 0 && info.dli_fname != nullptr) object = fs::canonical(info.dli_fname, ignored);
    if (object.empty()) object = fs::read_symlink("/proc/self/exe", ignored);  // started without a path
    auto directory = object.parent_path();
    for (int up = 0; up < 2; ++up) {
        directory = directory.parent_path();
        auto const platforms = directory / "share" / "tapioca" / "platforms";
        if (fs::is_directory(platforms, ignored)) return platforms;
    }
    return {};
}

core::Result<std::string> read_text(std::string const& path)
{
    std::error_code ignored;
    if (fs::is_fifo(path, ignored) || fs::is_socket(path, ignored))
        return core::fail(Errc::setting, fmt::format("platform file {}: a pipe or a socket, not a plain file", path));
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (!file) return core::fail_errno(errno, "platform file " + path);
    std::string text;
    char chunk[65536];
    while (text.size() <= largest_platform_file) {
        auto const got = std::fread(chunk, 1, sizeof chunk, file.get());
        if (got == 0) break;
        text.append(chunk, got);
    }
    if (std::ferror(file.get()) != 0) return core::fail_errno(errno, "platform file " + path);
    if (text.size() > largest_platform_file)
        return core::fail(Errc::setting, fmt::format("platform file {}: larger than 64 MiB", path));
    return text;
}

}  // namespace

std::vector<std::string> shipped_platforms()
{
    std::vector<std::string> names;
    std::error_code ignored;
    if (auto const directory = shipped_directory(); !directory.empty())
        for (auto const& entry : fs::directory_iterator(directory, ignored))
            if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

core::Result<PlatformText> read_platform(std::string const& name)
{
    std::string path = name;
    if (name.find('/') == std::string::npos && !name.ends_with(".toml")) {
        auto const names = shipped_platforms();
        if (names.empty())
            return core::fail(Errc::not_found,
                              fmt::format("platform '{}': no platforms are installed with the library; "
                                          "name a file, such as ./{}.toml",
                                          name, name));
        if (std::find(names.begin(), names.end(), name) == names.end())
            return core::fail(Errc::not_found,
                              fmt::format("platform '{}' is not shipped: did you mean '{}'? There are {}; "
                                          "to use a file of your own, give its path",
                                          name, core::nearest(name, names), fmt::join(names, ", ")));
        path = (shipped_directory() / (name + ".toml")).string();
    }
    auto text = read_text(path);
    if (!text) return tl::unexpected(text.error());
    return PlatformText{path, std::move(*text)};
}

}  // namespace tapioca::machine
