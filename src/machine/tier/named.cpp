#include "machine/tier/named.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "core/units.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/tier/memory_head.hpp"

namespace tapioca::machine {

namespace {

constexpr std::string_view harmless = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
constexpr std::string_view hex_digits = "0123456789ABCDEF";

/// `text` as part of a file's name: other bytes are written as %2F.
std::string escaped(std::string_view text)
{
    std::string result;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (harmless.find(c) != harmless.npos)
            result += c;
        else
            result += {'%', hex_digits[byte >> 4], hex_digits[byte & 15]};
    }
    return result;
}

/// The reverse; nothing if the text is not what escaped() returns.
std::optional<std::string> unescaped(std::string_view text)
{
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            result += text[at];
            continue;
        }
        auto const high = at + 2 < text.size() ? hex_digits.find(text[at + 1]) : hex_digits.npos;
        auto const low = at + 2 < text.size() ? hex_digits.find(text[at + 2]) : hex_digits.npos;
        if (high == hex_digits.npos || low == hex_digits.npos) return std::nullopt;
        result += static_cast<char>(high * 16 + low);
        at += 2;
    }
    if (result.empty() || result.size() > longest_memory_name || escaped(result) != text) return std::nullopt;
    return result;
}

std::string prefix_of_user()
{
    return fmt::format("tapioca-memory-{}-", ::geteuid());
}

/// What the files of a tier's memory begin with. Several tiers may share a directory.
std::string prefix_of(Tier const& tier)
{
    auto const& traits = tier.traits();
    auto part = escaped(traits.kind);
    if (!traits.place.empty() && traits.place != tier.directory()) part += '+' + escaped(traits.place);
    if (part.size() > 32) part = fmt::format("{:016x}", core::digest(part));
    return prefix_of_user() + part + '-';
}

core::Failure labelled(core::Failure failure, std::string const& tier, std::string const& name)
{
    failure.text = fmt::format("memory {} of {}: {}", core::printable(name), tier, failure.text);
    return failure;
}

core::Status check_memory_name(Tier const& tier, std::string const& name)
{
    if (!name.empty() && name.size() <= longest_memory_name) return {};
    auto failed = core::fail(Errc::invalid_argument, fmt::format("a name has 1 to {} bytes, and this one has {}",
                                                                 longest_memory_name, name.size()));
    return tl::unexpected(labelled(failed.value(), tier.traits().name, name.substr(0, longest_memory_name)));
}

core::Failure exists_already(std::string const& path)
{
    return {Errc::invalid_state, EEXIST, -1,
            fmt::format("it exists already, as {}: attach to it, remove it, or choose another name", path)};
}

core::Failure with_advice(core::Failure failure)
{
    if (failure.code == Errc::io) failure.text += ": tapioca::Memory::remove() removes it";
    return failure;
}

/// Fails unless there is no memory at `path`.
core::Status check_free_name(std::string const& path)
{
    auto const found = HeldFile::open(path);
    if (found) return tl::unexpected(exists_already(path));
    if (found.error().code == Errc::not_found) return {};
    return tl::unexpected(with_advice(found.error()));
}

/// Why memory of this size cannot be had. The tier's own text gives advice on aggregation buffers.
core::Failure not_allocated(Tier const& tier, std::uint64_t bytes, core::Failure failure)
{
    if (failure.sys_errno == 0) return failure;
    bool const full = failure.code == Errc::no_space || failure.code == Errc::memory;
    failure.text = fmt::format("{} in {}: {}", core::format_bytes(bytes), tier.directory(),
                               full ? fmt::format("there is no room, only {} are free: free memory there or choose "
                                                  "another tier",
                                                  core::format_bytes(free_bytes(tier.traits())))
                                    : std::strerror(failure.sys_errno));
    return failure;
}

core::Status sync_names_in(std::string const& directory)
{
    core::Descriptor const opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    bool const done = opened && core::uninterrupted([&] { return ::fsync(opened.get()); }) == 0;
    if (!done && errno != EINVAL) return core::fail_errno(errno, "fsync of " + directory);
    return {};  // some file systems do not support it
}

}  // namespace

NamedMemory::NamedMemory(TierTraits traits, std::string name, HeldFile held, TierMapping mapping)
    : traits_(std::move(traits)), name_(std::move(name)), held_(std::move(held)), mapping_(std::move(mapping))
{
}

core::Result<NamedMemory> NamedMemory::create(Tier const& tier, std::string const& name, std::uint64_t bytes)
{
    auto const& traits = tier.traits();
    auto const refuse = [&](core::Failure failure) {
        return tl::unexpected(labelled(std::move(failure), traits.name, name));
    };
    if (auto status = check_memory_name(tier, name); !status) return tl::unexpected(status.error());
    if (bytes == 0) return refuse({Errc::invalid_argument, 0, -1, "memory has at least one byte"});
    auto const path = path_of_memory(tier, name);
    if (auto status = check_free_name(path); !status) return refuse(status.error());

    auto mapping = tier.create(std::max(bytes, bytes + memory_head_bytes));  // or a number that is too large anyway
    if (!mapping) return refuse(not_allocated(tier, bytes, mapping.error()));
    auto const head = make_memory_head(bytes, traits.persistency);
    std::memcpy(mapping->data(), &head, sizeof head);
    auto file = mapping->keep_as(path);
    if (!file) return refuse(file.error().sys_errno == EEXIST ? exists_already(path) : file.error());
    return NamedMemory(traits, name, HeldFile(std::move(*file), path, bytes, traits.persistency), std::move(*mapping));
}

core::Result<NamedMemory> NamedMemory::attach(Tier const& tier, std::string const& name)
{
    auto const& traits = tier.traits();
    auto const refuse = [&](core::Failure failure) {
        if (failure.code == Errc::not_found) failure.text = "there is none on this host";
        return tl::unexpected(labelled(with_advice(std::move(failure)), traits.name, name));
    };
    if (auto status = check_memory_name(tier, name); !status) return tl::unexpected(status.error());
    auto const path = path_of_memory(tier, name);
    auto held = HeldFile::open(path);
    if (!held) return refuse(held.error());
    auto mapping = tier.attach(path, memory_head_bytes + held->bytes());
    if (!mapping) return refuse(mapping.error());
    struct stat info = {};
    if (::fstat(held->fd(), &info) != 0 || info.st_ino != mapping->inode())  // freed and allocated again meanwhile
        return refuse({Errc::not_found, ENOENT, -1, ""});
    return NamedMemory(traits, name, std::move(*held), std::move(*mapping));
}

std::span<std::byte> NamedMemory::data() const
{
    return {mapping_.data() + memory_head_bytes, static_cast<std::size_t>(held_.bytes())};
}

core::Failure NamedMemory::told(core::Failure failure) const
{
    return labelled(std::move(failure), traits_.name, name_);
}

core::Status NamedMemory::check_range(std::uint64_t offset, std::uint64_t bytes) const
{
    if (offset <= held_.bytes() && bytes <= held_.bytes() - offset) return {};
    return core::fail(Errc::invalid_argument,
                      fmt::format("{} bytes at {} are out of range: it has {} bytes", bytes, offset, held_.bytes()));
}

core::Status NamedMemory::write(std::uint64_t offset, std::span<std::byte const> bytes) const
{
    return check_range(offset, bytes.size())
        .and_then([&] { return core::write_all(held_.fd(), memory_head_bytes + offset, bytes, "it"); })
        .map_error([&](core::Failure failure) { return told(std::move(failure)); });
}

core::Status NamedMemory::read(std::uint64_t offset, std::span<std::byte> bytes) const
{
    return check_range(offset, bytes.size())
        .and_then([&] { return core::read_all(held_.fd(), memory_head_bytes + offset, bytes, "it"); })
        .map_error([&](core::Failure failure) { return told(std::move(failure)); });
}

core::Status NamedMemory::flush() const
{
    auto status = mapping_.flush();
    if (status && is_device(traits_)) {
        auto const slash = path().rfind('/');
        if (core::uninterrupted([&] { return ::fsync(held_.fd()); }) != 0)
            status = core::fail_errno(errno, "fsync");
        else
            status = sync_names_in(path().substr(0, slash));
    }
    return status ? status : core::Status(tl::unexpected(told(status.error())));
}

core::Status NamedMemory::free()
{
    struct stat own = {};
    struct stat named = {};
    auto const file = open_file(path());  // not held_'s, whose locks are also those of forked processes
    bool const ours = file && ::fstat(held_.fd(), &own) == 0 && ::fstat(file->get(), &named) == 0 &&
                      own.st_dev == named.st_dev && own.st_ino == named.st_ino;
    if (!ours) return {};  // others have freed it
    auto const status = remove_name(*file, path());
    return status ? status : core::Status(tl::unexpected(told(status.error())));
}

std::string path_of_memory(Tier const& tier, std::string const& name)
{
    return tier.directory() + '/' + prefix_of(tier) + escaped(name);
}

core::Status remove_memory(Tier const& tier, std::string const& name)
{
    if (auto status = check_memory_name(tier, name); !status) return status;
    auto const path = path_of_memory(tier, name);
    auto const file = open_file(path);
    auto status = file ? remove_name(*file, path) : core::Status(tl::unexpected(file.error()));
    if (!status && status.error().code == Errc::not_found) status.error().text = "there is none on this host";
    return status ? status : core::Status(tl::unexpected(labelled(status.error(), tier.traits().name, name)));
}

core::Result<std::vector<std::string>> list_memory(Tier const& tier)
{
    auto const directory = tier.directory();
    auto const prefix = prefix_of(tier);
    std::unique_ptr<DIR, int (*)(DIR*)> const entries(::opendir(directory.c_str()), &::closedir);
    if (!entries) return core::fail_errno(errno, directory);
    std::vector<std::string> names;
    while (auto const* const entry = ::readdir(entries.get())) {
        std::string_view const file = entry->d_name;
        auto name = file.starts_with(prefix) ? unescaped(file.substr(prefix.size())) : std::nullopt;
        if (!name) continue;
        auto const held = HeldFile::open(directory + '/' + std::string(file));
        bool const there = held || held.error().code == Errc::io;
        if (there) names.push_back(std::move(*name));
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool is_named_memory(std::string_view file)
{
    return file.starts_with(prefix_of_user());
}

}  // namespace tapioca::machine
