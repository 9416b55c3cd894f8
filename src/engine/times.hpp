// What a rank spent its time on.
#pragma once

#include <chrono>
#include <cstdint>

namespace tapioca::engine {

/// What a rank spent its time on, in seconds, and what it moved.
struct Times {
    double copying = 0;
    double draining = 0;  ///< the drain thread's, or a direct access's
    std::uint64_t bytes = 0;
    std::uint64_t rounds = 0;  ///< drained or read by this rank
    std::uint64_t calls = 0;   ///< of the target
};

/// Adds the seconds of its life to `total`.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
    Stopwatch(Stopwatch const&) = delete;
    Stopwatch& operator=(Stopwatch const&) = delete;
    ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    double& total_;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace tapioca::engine
