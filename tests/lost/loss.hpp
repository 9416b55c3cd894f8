// How a rank is lost: by a signal at any moment, from another thread, or by a call between two others.
#pragma once

#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include <unistd.h>

namespace tapioca::test {

/// Has an effect only on the rank that is lost.
class Loss {
public:
    /// `way`: kill, segv, abort or exit; the seed decides when.
    Loss(std::string way, unsigned seed, bool mine) : way_(std::move(way))
    {
        std::mt19937 random(seed);
        if (!mine) return;
        calls_ = 1 + static_cast<int>(random() % 40);
        if (way_ != "kill" && way_ != "segv") return;
        calls_ = 0;
        auto const moment = std::chrono::microseconds(random() % 300'000);
        std::thread([signal = way_ == "kill" ? SIGKILL : SIGSEGV, moment] {
            std::this_thread::sleep_for(moment);
            ::kill(::getpid(), signal);
            if (signal == SIGSEGV) std::raise(signal);
        }).detach();
    }

    /// Between two calls.
    void maybe()
    {
        if (calls_ == 0 || --calls_ > 0) return;
        if (way_ == "abort") MPI_Abort(MPI_COMM_WORLD, 3);
        if (way_ == "exit") std::exit(0);
    }

private:
    std::string way_;
    int calls_ = 0;
};

/// Prints the process id, so that leftovers can be found, and limits the duration of the job.
inline void begin_job(int rank)
{
    if (auto* const file = std::fopen(("pid." + std::to_string(rank)).c_str(), "w")) {
        std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
        std::fclose(file);
    }
}

/// What a missing rank does.
inline void never_come()
{
    ::sleep(120);
    std::exit(1);
}

}  // namespace tapioca::test
