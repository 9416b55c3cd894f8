// Stopwatch: how long something takes.
#pragma once

#include <chrono>

namespace tapioca::core {

/// Adds the seconds for which it exists to `total`.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total) {}
    Stopwatch(Stopwatch const&) = delete;
    Stopwatch& operator=(Stopwatch const&) = delete;
    ~Stopwatch() { total_ += seconds(); }
    /// The seconds so far.
    [[nodiscard]] double seconds() const
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    double& total_;
    std::chrono::steady_clock::time_point const start_ = std::chrono::steady_clock::now();
};

}  // namespace tapioca::core
