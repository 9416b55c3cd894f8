// Target: how many processes should write and read a file system at the same time.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "crew.hpp"
#include "machine/storage.hpp"

namespace calibrate {

/// Bytes per second of this number of processes together.
struct Streams {
    int count = 1;
    double write = 0, read = 0;
};

struct TargetFigures {
    tapioca::machine::Storage storage;  ///< including what was measured
    std::vector<Streams> rows;          ///< by count, ascending
    double call_s = 0;                  ///< of a write of 8 bytes
    std::uint64_t bytes = 0;            ///< of the file
};

/// Writes and reads one file in `directory`, which all nodes share, in pieces of 1 MiB, by 1, 2, 4, ... ranks spread
/// over the nodes. For a file system of this machine, the page cache is included. For a remote one it is not: writes
/// end with fsync, and reads begin without cached data. The file is removed in any case. Collective.
tapioca::core::Result<TargetFigures> measure_target(Crew const& crew, std::string const& directory);

/// The least number of streams with 95 % of the best rate; `rate` is &Streams::write or &Streams::read.
Streams const& enough(std::vector<Streams> const& rows, double Streams::*rate);

}  // namespace calibrate
