// What a job that will be killed does: the same calls on every rank for the same seed, and what they write.
#pragma once

#include <string>
#include <vector>

#include <tapioca/options.hpp>

#include "support/random_patterns.hpp"

namespace tapioca::test {

/// A collective call. Calls are numbered from 1 on; 0 is the opening.
struct CrashCall {
    enum class Kind { write, flush, sync, size, pause };
    Kind kind = Kind::write;
    std::size_t job = 0;
    std::int64_t base = 0;
    bool in_background = false;
    bool alone = false;  ///< an independent write; only in MPI-IO
};

struct Scenario {
    Options options;
    bool create = false;  ///< the file begins empty
    std::vector<Job> jobs;
    std::vector<CrashCall> calls;
    bool closes = false;
};
/// What kind of job, by the words in CRASH_KIND.
struct CrashKind {
    bool dropin = false;    ///< MPI-IO through the drop-in library; every variable is one extent
    bool loss = false;      ///< the machine stops, and not only its processes
    bool subfiled = false;  ///< the file is a set of subfiles, or becomes one
    bool staged = true;     ///< with logs
    bool target = false;    ///< the set's data stays on a tier of the nodes
    bool drains = false;    ///< which is drained while the job computes
};
CrashKind crash_kind();
Scenario scenario_of(std::uint64_t seed, int ranks, std::string const& stage, CrashKind kind);

/// The node of a rank, which has a directory of its own for the data of a set on a tier.
int node_of(Options const& options, int rank);

/// What `rank` writes in a call, variable by variable.
std::vector<Bytes> written_by(Scenario const& scenario, std::uint64_t seed, std::size_t call, std::size_t rank);

/// How far a rank got: the last call that it began, and the last that returned. -1: none.
struct Progress {
    int begun = -1;
    int returned = -1;
};

}  // namespace tapioca::test
