// A sweep: runs a scenario once for every fault, at every call of every rank, and checks the result.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faults/inject.hpp"

namespace tapioca::faults {

/// The result of a call of the library.
struct Outcome {
    bool ok = true;
    std::string text;
};

/// Thrown when ranks got different results, after which the trial cannot continue.
struct Diverged {};

/// One run of a scenario, on one rank. Every member function is collective over all ranks.
class Trial {
public:
    Trial(MPI_Comm everybody, std::string directory);
    Trial(Trial const&) = delete;
    Trial& operator=(Trial const&) = delete;
    ~Trial();

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int ranks() const { return ranks_; }
    /// A communicator of this trial.
    [[nodiscard]] MPI_Comm comm() const { return comm_; }
    [[nodiscard]] std::string path(std::string const& name) const { return directory_ + "/" + name; }

    /// A collective call of the library, whose result must be the same on all ranks. Returns true if it succeeded.
    bool call(std::string const& what, std::function<Outcome()> const& body);
    /// A local call. Returns true if it succeeded on all ranks.
    bool local_call(std::string const& what, std::function<Outcome()> const& body);
    /// Records a violation if `good` is false on any rank.
    void expect(bool good, std::string const& otherwise);
    /// From here on, no faults are injected.
    void disarm();

    [[nodiscard]] int fired() const { return fired_; }
    [[nodiscard]] bool failed() const { return failed_; }  ///< some call failed
    [[nodiscard]] std::vector<std::string> const& violations() const { return violations_; }

private:
    bool all(bool mine) const;

    MPI_Comm everybody_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, ranks_ = 1;
    std::string directory_;
    bool armed_ = true;
    bool failed_ = false;
    int fired_ = 0;
    std::vector<std::string> violations_;
};

struct Scenario {
    std::string name;
    std::string place;  ///< column of the table: declared, drop-in, staged
    std::function<void(Trial&)> body;
    bool writes = true;
    bool keeps = false;  ///< keeps memory if it runs out while ranks of several nodes exchange messages
};

/// Runs all scenarios with all faults according to the command line. Returns the exit status.
int sweep(int argc, char** argv, std::vector<Scenario> const& scenarios);

}  // namespace tapioca::faults
