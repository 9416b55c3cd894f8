// What the two programs of the workflow have in common: the format of a snapshot, the file that holds the particles of
// one time step, and how the analysis learns that a snapshot is complete.
#pragma once

#include <tapioca/tapioca.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace workflow {

/// The first 40 bytes of a snapshot.
struct Header {
    static constexpr std::uint64_t magic_number = 0x53545241'50495041;  // "APIPARTS"

    std::uint64_t magic = magic_number;
    std::int64_t step = 0;
    std::int64_t steps = 0;      ///< of the whole run
    std::int64_t particles = 0;  ///< of all ranks
    std::uint64_t checksum = 0;  ///< sum of all particles' checksums, which does not depend on the number of ranks
};
static_assert(sizeof(Header) == 40);

/// The particles of a rank, with the nine variables of HACC-IO: 38 bytes per particle.
struct Particles {
    explicit Particles(std::int64_t number) : pid(static_cast<std::size_t>(number)), mask(pid.size())
    {
        floats.fill(std::vector<float>(pid.size()));
    }
    [[nodiscard]] std::size_t size() const { return pid.size(); }

    std::array<std::vector<float>, 7> floats;  ///< XX YY ZZ VX VY VZ phi
    std::vector<std::int64_t> pid;
    std::vector<std::uint16_t> mask;
};

/// The part of `total` particles that `rank` of `ranks` has: the first one, and one past the last.
struct Share {
    std::int64_t begin, end;
};
inline Share share_of(std::int64_t total, int rank, int ranks)
{
    auto const first = [&](int r) { return total / ranks * r + std::min<std::int64_t>(total % ranks, r); };
    return {first(rank), first(rank + 1)};
}

/// Where a snapshot has the particles of a share: behind the header, one variable after the other, each of all ranks.
inline tapioca::Pattern particles_pattern(Share share, std::int64_t total)
{
    auto base = static_cast<std::int64_t>(sizeof(Header));
    auto const next = [&](std::int64_t size) {
        tapioca::Extent const extent{base + share.begin * size, (share.end - share.begin) * size};
        base += total * size;
        return extent;
    };
    tapioca::Pattern pattern;
    for (auto const* const name : {"XX", "YY", "ZZ", "VX", "VY", "VZ", "phi"}) pattern.add<float>(name, {next(4)});
    pattern.add<std::int64_t>("pid", {next(8)});
    pattern.add<std::uint16_t>("mask", {next(2)});
    return pattern;
}

/// The sum of the checksums (FNV-1a) of a rank's particles, the first of which is number `first` in the snapshot. A
/// wrong byte or two particles that have changed places change it.
inline std::uint64_t checksum(Particles const& particles, std::int64_t first)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < particles.size(); ++i) {
        std::uint64_t hash = 0xcbf29ce484222325;
        auto const add = [&](auto const& value) {
            unsigned char bytes[sizeof value];
            std::memcpy(bytes, &value, sizeof value);
            for (auto const byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
        };
        add(first + static_cast<std::int64_t>(i));
        for (auto const& values : particles.floats) add(values[i]);
        add(particles.pid[i]);
        add(particles.mask[i]);
        sum += hash;
    }
    return sum;
}

/// DIR/step.0003, the snapshot of a step. It may be a plain file or the stub of one whose data lies elsewhere.
inline std::string snapshot_path(std::string const& directory, std::int64_t step)
{
    auto const digits = std::to_string(step);
    return directory + "/step." + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

/// DIR/step.0003.done, an empty file. One process of the simulation creates it after File::close() has returned, so
/// whoever sees it can open the snapshot and finds all of it: also on another node, since even file systems that keep
/// writes back, such as NFS, have delivered them when the file is closed, and the analysis does not look at the
/// snapshot before. Renaming the snapshot would say the same of a plain file, but a stub should keep the name it was
/// made with.
inline std::string done_path(std::string const& directory, std::int64_t step)
{
    return snapshot_path(directory, step) + ".done";
}

/// What ends a program, with its exit status. All ranks throw the same.
struct Failure : std::runtime_error {
    Failure(int exit_status, std::string const& text) : std::runtime_error(text), status(exit_status) {}
    int status;
};

/// A number of an option, from `least` to 10^9; nothing if `text` is not one.
inline std::optional<std::int64_t> number(char const* text, std::int64_t least)
{
    std::int64_t value = 0;
    auto const* const end = text + std::strlen(text);
    auto const [at, error] = std::from_chars(text, end, value);
    if (error != std::errc() || at != end || value < least || value > 1'000'000'000) return std::nullopt;
    return value;
}

}  // namespace workflow
