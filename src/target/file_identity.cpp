#include "target/file_identity.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/host.hpp"
#include "core/interrupt.hpp"

namespace tapioca::target {

namespace {

std::uint64_t find_kernel_number()
{
    auto const id = core::boot_id();
    return id.empty() ? core::random_number() : core::digest(id);  // a random number; then a probe must decide
}

std::int64_t changed_ns(struct stat const& file)
{
    return file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec;
}

/// A digest of some blocks of the file, including the first and the last.
std::uint64_t samples_of(int fd, std::int64_t size)
{
    constexpr std::int64_t samples = 16;
    std::array<char, 4096> block = {};
    auto const last = std::max<std::int64_t>(0, size - static_cast<std::int64_t>(block.size()));
    std::uint64_t hash = core::digest({});
    for (std::int64_t i = 0; i < samples; ++i) {
        auto const at = last / (samples - 1) * i + last % (samples - 1) * i / (samples - 1);
        auto const bytes = core::uninterrupted([&] { return ::pread(fd, block.data(), block.size(), at); });
        if (bytes > 0) hash = core::digest({block.data(), static_cast<std::size_t>(bytes)}, hash);
    }
    return hash;
}

/// A path without links: the directory, with a slash, and the name.
std::pair<std::string, std::string> resolve(std::string const& path)
{
    std::unique_ptr<char, void (*)(void*)> const real(::realpath(path.c_str(), nullptr), std::free);
    std::string const full = real ? real.get() : path;
    auto const name = full.rfind('/') + 1;
    return {full.substr(0, name), full.substr(name)};
}

/// What a probe tells other hosts; its own name and that of the file follow.
struct Evidence {
    FileIdentity identity;
    std::int64_t changed_ns;
    std::uint64_t samples;
    std::uint64_t probe_bytes;  ///< length of the probe's name; 0: there is no probe
};

}  // namespace

std::uint64_t kernel_number()
{
    static std::uint64_t const number = find_kernel_number();
    return number;
}

core::Result<FileIdentity> identity_of(int fd)
{
    struct stat file = {};
    if (::fstat(fd, &file) != 0) return core::fail_errno(errno, "fstat");
    if (!S_ISREG(file.st_mode)) return FileIdentity{0, file.st_rdev, 0, 0, machine::Reach::one_host};
    return FileIdentity{kernel_number(), file.st_dev, file.st_ino, static_cast<std::uint64_t>(file.st_size),
                        machine::reach_of(fd)};
}

Verdict compare(FileIdentity const& a, FileIdentity const& b)
{
    using machine::Reach;
    if (a.kernel == b.kernel) {
        if (a.device == b.device) return a.inode == b.inode ? Verdict::same : Verdict::different;
        bool const local = a.reach == Reach::one_host && b.reach == Reach::one_host;
        return local ? Verdict::different : Verdict::unsure;  // a host may have mounted what it serves itself
    }
    bool const shared = a.reach == Reach::several_hosts && b.reach == Reach::several_hosts;
    return shared && a.inode == b.inode && a.bytes == b.bytes ? Verdict::same : Verdict::unsure;
}

std::string absolute(std::string const& path)
{
    if (path.empty() || path[0] == '/') return path;
    std::error_code error;
    auto const directory = std::filesystem::current_path(error);
    return error ? path : (directory / path).string();
}

Probe::Probe(std::string const& path, int fd)
{
    auto const [directory, name] = resolve(path);
    auto probe = fmt::format(".tapioca-probe-{:016x}", core::random_number());
    auto const full = directory + probe;
    core::Descriptor const made(core::uninterrupted(
        [&] { return ::open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600); }));
    Evidence evidence = {};
    if (auto const identity = identity_of(fd)) evidence.identity = *identity;
    if (made) {
        beside_ = directory + probe;
    } else {
        probe.clear();
        struct stat file = {};
        if (::fstat(fd, &file) == 0) evidence.changed_ns = changed_ns(file);
        evidence.samples = samples_of(fd, file.st_size);
    }
    evidence.probe_bytes = probe.size();
    evidence_.assign(reinterpret_cast<char const*>(&evidence), sizeof evidence);
    evidence_ += probe + name;
}

Probe::~Probe()
{
    if (!beside_.empty()) ::unlink(beside_.c_str());
}

bool confirms(std::string_view evidence, std::string const& path, int fd)
{
    Evidence theirs;
    std::memcpy(&theirs, evidence.data(), sizeof theirs);
    auto const probe = evidence.substr(sizeof theirs, theirs.probe_bytes);
    auto const their_name = evidence.substr(sizeof theirs + theirs.probe_bytes);
    auto const mine = identity_of(fd);
    struct stat file = {};
    if (!mine || ::fstat(fd, &file) != 0) return false;
    if (probe.empty()) {
        // One of the two hosts may serve the file to the other.
        bool const local = mine->reach == machine::Reach::one_host && theirs.identity.reach == machine::Reach::one_host;
        return !local && mine->bytes == theirs.identity.bytes && changed_ns(file) == theirs.changed_ns &&
               samples_of(fd, file.st_size) == theirs.samples;
    }
    auto const [directory, name] = resolve(path);
    auto const wanted = directory + std::string(probe);
    bool found = ::access(wanted.c_str(), F_OK) == 0;
    bool const waits = mine->reach != machine::Reach::one_host;
    for (int pause_ms = 1; waits && !found && pause_ms <= 1024; pause_ms *= 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
        found = ::access(wanted.c_str(), F_OK) == 0;
    }
    return found && (name == their_name || mine->inode == theirs.identity.inode);
}

}  // namespace tapioca::target
