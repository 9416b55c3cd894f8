#include "subfile/stub.hpp"

#include <algorithm>
#include <array>

#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"
#include "core/output.hpp"

namespace tapioca::subfile {

namespace {

constexpr std::string_view first_line = "TAPIOCA subfile set, version ";
constexpr std::string_view version = "1";
constexpr std::string_view directory_key = "directory: ";
constexpr std::string_view identity_key = "identity: ";
constexpr std::string_view tier_key = "tier: ";
constexpr std::string_view checksum_key = "checksum: ";
constexpr std::string_view ending = ".subfiles";
constexpr std::size_t longest_name = 255;
constexpr std::size_t text_begins = beginning_bytes + 1;

std::string checksum_of(std::string_view text)
{
    return fmt::format("{:016x}", stage::checksum_of(text.data(), text.size()));
}

/// The rest of the line that begins with `key`; empty if there is none.
std::string_view value_of(std::string_view text, std::string_view key)
{
    for (std::size_t begin = 0; begin < text.size();) {
        auto const end = std::min(text.find('\n', begin), text.size());
        auto const line = text.substr(begin, end - begin);
        if (line.starts_with(key)) return line.substr(key.size());
        begin = end + 1;
    }
    return {};
}

/// A name that can only lead to something beside the stub.
bool is_plain_name(std::string_view name)
{
    return name.size() > ending.size() && name.size() <= longest_name && name.ends_with(ending) &&
           name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

std::optional<SetId> parse_identity(std::string_view hex)
{
    SetId identity = {};
    if (hex.size() != 2 * identity.size()) return std::nullopt;
    auto const digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    for (std::size_t i = 0; i < identity.size(); ++i) {
        auto const high = digit(hex[2 * i]);
        auto const low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        identity[i] = static_cast<std::byte>(16 * high + low);
    }
    return identity;
}

std::string real_path(std::string const& path)
{
    struct stat file = {};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISLNK(file.st_mode)) return path;
    std::unique_ptr<char, decltype(&std::free)> const resolved(::realpath(path.c_str(), nullptr), std::free);
    return resolved ? resolved.get() : path;
}

std::string directory_name(std::string const& path, int choice)
{
    auto const real = real_path(path);
    auto const own = real.substr(real.rfind('/') + 1);
    auto const end = (choice > 1 ? fmt::format(".{}", choice) : std::string()) + std::string(ending);
    auto name = own;
    for (auto& c : name)
        if (c == '\n') c = '_';  // it is a line of the stub
    if (name == own && name.size() + end.size() <= longest_name) return name + end;
    auto const sum = "-" + checksum_of(own);
    name.resize(std::min(name.size(), longest_name - end.size() - sum.size()));
    return name + sum + end;
}

std::string beside(std::string const& path, std::string const& directory)
{
    auto const real = real_path(path);
    return real.substr(0, real.rfind('/') + 1) + directory;
}

std::string to_text(Stub const& stub)
{
    auto text = fmt::format(
        "{}{}\n"
        "\n"
        "This is not the file's data. The data lies in several files, in this directory beside this file:\n"
        "{}{}\n"
        "{}{}\n"
        "{}"
        "\n"
        "TAPIOCA reads and writes them as one file; so does a program that is started with `tapioca run`.\n"
        "To make a plain file of them: tapioca subfile join THIS_FILE\n",
        first_line, version, directory_key, stub.directory, identity_key, stage::to_hex(stub.identity),
        stub.tier.empty()
            ? std::string()
            : fmt::format("{}{}\n"
                          "\n"
                          "Data may still be on that tier of the nodes that wrote it. To bring it here, on "
                          "each of them:\n"
                          "tapioca target drain THIS_FILE\n",
                          tier_key, stub.tier));
    auto const last = checksum_key.size() + 16 + 1;
    text.resize(stub_bytes - text_begins - last, '\n');
    return std::string(beginning_bytes, ' ') + "\n" + text + std::string(checksum_key) + checksum_of(text) + "\n";
}

core::Result<std::optional<Stub>> parse_stub(std::string_view text)
{
    if (text.size() != stub_bytes) return std::nullopt;
    text.remove_prefix(text_begins);
    if (!text.starts_with(first_line)) return std::nullopt;
    auto const its_version = text.substr(first_line.size(), text.find('\n') - first_line.size());
    if (its_version != version)
        return core::fail(Errc::unsupported, fmt::format("this is a subfile set of version {}, and this program reads "
                                                         "version {}",
                                                         core::printable(its_version.substr(0, 20)), version));
    auto const sealed = text.substr(0, text.size() - checksum_key.size() - 17);
    auto const identity = parse_identity(value_of(text, identity_key));
    auto const directory = value_of(text, directory_key);
    auto const tier = value_of(text, tier_key);
    bool const is_tier = tier.size() <= longest_tier && tier.find('\0') == std::string_view::npos;
    if (!is_tier || value_of(text.substr(sealed.size()), checksum_key) != checksum_of(sealed) || !identity ||
        !is_plain_name(directory))
        return core::fail(Errc::io,
                          "the text that names its directory of subfiles is damaged: do not edit it; "
                          "`tapioca subfile verify` looks for the directory");
    return Stub{*identity, std::string(directory), std::string(tier)};
}

core::Result<std::optional<Stub>> read_stub(int fd)
{
    struct stat file = {};
    if (::fstat(fd, &file) != 0) return core::fail_errno(errno, "fstat");
    if (!S_ISREG(file.st_mode) || file.st_size != static_cast<off_t>(stub_bytes)) return std::nullopt;
    std::string text(stub_bytes, '\0');
    auto const status = core::read_all(fd, 0, std::as_writable_bytes(std::span(text)), "the file");
    if (!status) return tl::unexpected(status.error());
    return parse_stub(text);
}

core::Result<std::optional<Stub>> find_stub(std::string const& path)
{
    struct stat file = {};
    if (::stat(path.c_str(), &file) != 0 || file.st_size != static_cast<off_t>(stub_bytes)) return std::nullopt;
    core::Descriptor const opened(
        core::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    return opened ? read_stub(opened.get()) : std::nullopt;
}

core::Status check_remains(std::string const& path, int fd, std::uint64_t bytes)
{
    // Most files are something else, which few bytes show.
    std::array<char, first_line.size()> line = {};
    auto read =
        core::uninterrupted([&] { return ::pread(fd, line.data(), line.size(), static_cast<off_t>(text_begins)); });
    bool const begins =
        read == static_cast<ssize_t>(line.size()) && std::string_view(line.data(), line.size()) == first_line;
    if (!begins && bytes != stub_bytes) return {};
    std::string text(stub_bytes, '\0');
    read = core::uninterrupted([&] { return ::pread(fd, text.data(), text.size(), 0); });
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
    auto const directory = beside(path, salvage(path, text).directory);
    struct stat mine = {};
    struct stat link = {};
    bool const is_there = ::access(directory.c_str(), F_OK) == 0;
    bool const is_linked = is_there && ::fstat(fd, &mine) == 0 &&
                           ::lstat((directory + "/" + link_name).c_str(), &link) == 0 && mine.st_ino == link.st_ino;
    if (!is_there || (!begins && !is_linked)) return {};
    return core::fail(Errc::io,
                      fmt::format("this was the stub of the subfiles in {}, and was changed; its data is still "
                                  "there: `tapioca subfile recover {}` makes the stub again",
                                  core::printable(directory), core::shell_word(path)));
}

StubRemains salvage(std::string const& path, std::string_view text)
{
    auto const directory = value_of(text, directory_key);
    return {is_plain_name(directory) ? std::string(directory) : directory_name(path),
            std::string(value_of(text, tier_key).substr(0, longest_tier))};
}

bool is_of_stub(std::string_view text)
{
    if (text.size() > text_begins && text.substr(text_begins).starts_with(first_line)) return true;
    return is_plain_name(value_of(text, directory_key)) && parse_identity(value_of(text, identity_key));
}

core::Status write_stub(int fd, Stub const& stub)
{
    auto const text = to_text(stub);
    if (core::uninterrupted([&] { return ::ftruncate(fd, 0); }) != 0) return core::fail_errno(errno, "emptying");
    return core::write_all(fd, 0, std::as_bytes(std::span(text)), "the stub");
}

core::Status write_beginning(int fd, std::span<std::byte const> first)
{
    std::array<std::byte, beginning_bytes> beginning;
    beginning.fill(std::byte{' '});
    if (first.size() >= beginning_bytes && !stage::is_zero(first.first(beginning_bytes)))
        std::copy_n(first.begin(), beginning_bytes, beginning.begin());
    return core::write_all(fd, 0, beginning, "the stub");
}

}  // namespace tapioca::subfile
