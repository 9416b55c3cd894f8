// What a rank of a soak job records: calls begun and returned (for soak_check), bytes, and violations.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "faults/inject.hpp"
#include "soak/script.hpp"

namespace tapioca::soak {

/// Numbers of a job, added up over its ranks.
struct Counts {
    enum Name {
        files,    ///< on rank 0
        written,  ///< bytes
        read,     ///< bytes, all compared
        faults,   ///< armed
        came_true,
        errors,  ///< that calls returned with a fault, on rank 0
        mismatches,
        memory,
        descriptors,
        threads,
        shared_memory,
        names
    };
    long of[names] = {};
};

class Witness {
public:
    /// The arguments of main: SEED PLACE TROUBLE DIRECTORY STAGE TIER.
    Witness(int argc, char** argv, std::string const& interface);
    Witness(Witness const&) = delete;
    Witness& operator=(Witness const&) = delete;
    ~Witness();

    [[nodiscard]] Way const& way() const { return way_; }
    [[nodiscard]] Script const& script() const { return script_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(rank_); }
    [[nodiscard]] std::string path(Place const& place) const;
    /// The settings, and those of a file, as hints. To be freed.
    [[nodiscard]] MPI_Info hints(Hints const& of_file = {}) const;

    /// To be called around a call of the library. Number 0 is the opening, i + 1 the script's i-th call, and the number
    /// after the last is the closing.
    void begin(Place const& place, std::size_t number);
    void end(Place const& place, std::size_t number, bool good);

    void add(Counts::Name name, long more) { counts_.of[name] += more; }
    /// Records and prints a violation, with the rank.
    void complain(Counts::Name name, std::string const& text);
    /// The same, and ends the job.
    [[noreturn]] void give_up(std::string const& text);

    /// Runs all rounds by `round(number)`, which leaves nothing open, and checks what they leave behind. Collective.
    template <class Run>
    void run(Run const& round)
    {
        warm_up();
        auto const before_last = way_.dropin ? script_.rounds.size() - 1 : 1;
        faults::Belongings before;
        for (std::size_t i = 0; i < script_.rounds.size(); ++i) {
            if (i == before_last) before = faults::look();
            round(i);
            if (i >= before_last) compare(before);
        }
    }
    /// Prints the account on rank 0. Collective; returns true if there were no violations.
    bool close();

private:
    void warm_up() const;
    void compare(faults::Belongings const& before);
    void note(char what, Place const& place, std::size_t number) const;
    void maybe_die(Place const& place, std::size_t number) const;

    Way way_;
    Script script_;
    std::string directory_;
    int rank_ = 0;
    int diary_ = -1;
    Counts counts_;
};

/// One round of the job: its files at once, or one after the other. Collective.
template <class OpenFile>
void run_round(Witness& witness, std::size_t number)
{
    auto const& round = witness.script().rounds[number];
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<std::unique_ptr<OpenFile>> files;
    std::size_t most = 0;
    for (std::size_t i = 0; i < round.files.size(); ++i) {
        files.push_back(std::make_unique<OpenFile>(witness, comm, Place{number, i, 0}));
        most = std::max(most, round.files[i].calls.size());
    }
    auto const run = [&](auto first, auto last) {
        std::for_each(first, last, [](auto& file) { file->open(); });
        for (std::size_t call = 0; call < most; ++call)
            std::for_each(first, last, [&](auto& file) { file->run(call); });
        std::for_each(first, last, [](auto& file) { file->close(); });
    };
    if (round.at_once)
        run(files.begin(), files.end());
    else
        for (auto file = files.begin(); file != files.end(); ++file) run(file, file + 1);
    files.clear();
    MPI_Comm_free(&comm);
}

}  // namespace tapioca::soak
