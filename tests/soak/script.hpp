// What a job of the soak does. For the same seed it is the same on every rank, and for the program that checks the job
// afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/random_patterns.hpp"

namespace tapioca::soak {

using test::Bytes;
using test::Declared;
using test::Job;

/// What the driver decides about a job.
struct Way {
    std::uint64_t seed = 0;
    int ranks = 1;
    bool dropin = false;  ///< MPI-IO calls, served by the drop-in library
    bool box = false;     ///< on several hosts
    enum class Trouble { none, fault, kill } trouble = Trouble::none;
};
/// INTERFACE PLACE TROUBLE: declared or dropin; here or box; none, fault or kill.
Way way_of(std::uint64_t seed, int ranks, std::string const& interface, std::string const& place,
           std::string const& trouble);

/// One call on an open file, the same on all ranks.
struct Call {
    enum class Kind { write, read, flush, sync, size } kind = Kind::write;
    std::size_t pattern = 0;
    std::int64_t base = 0;
    bool background = false;
};

/// Names without tapioca_, and values.
using Hints = std::vector<std::pair<std::string, std::string>>;

struct FileScript {
    std::vector<Job> patterns;
    std::vector<Call> calls;
    bool reread = false;  ///< opened again to read all of it
    Hints hints;          ///< if it is to be a set of subfiles: which, and where its data stays
};

/// Files on one communicator, one after the other or all open at the same time.
struct Round {
    std::vector<FileScript> files;
    bool at_once = false;
};

/// Where trouble occurs: before a call, on a rank.
struct Moment {
    std::size_t round = 0, file = 0, call = 0;
    int rank = 0;
    int delay_us = 0;
};

struct Script {
    Hints settings;  ///< tapioca_buffersize and so on
    bool staged = false;
    std::vector<Round> rounds;  ///< the first is a warm-up
    Moment moment;
    std::uint64_t luck = 0;  ///< chooses the fault
};
/// `stage` and `tier` are directories for logs, and for buffers and what stays on the nodes.
Script script_of(Way const& way, std::string const& stage, std::string const& tier);

/// What a rank writes in a call, variable by variable.
struct Place {
    std::size_t round = 0, file = 0, call = 0;
};
std::vector<Bytes> written_by(Way const& way, Script const& script, Place const& place, std::size_t rank);

std::string file_name(std::size_t round, std::size_t file);

}  // namespace tapioca::soak
