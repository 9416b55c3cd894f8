// The progress line of a recovery: redrawn on a terminal, otherwise printed now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace recover {

class Progress {
public:
    /// `shown`: on one process. `live`: the line is redrawn.
    Progress(bool shown, bool live) : shown_(shown), live_(live) {}
    /// Begins a part of the work, with this many bytes on this process.
    void begin(std::string what, std::uint64_t bytes);
    void add(std::uint64_t bytes);
    void end();

private:
    void draw();

    bool shown_;
    bool live_;
    std::string what_;
    std::uint64_t bytes_ = 0;
    std::uint64_t done_ = 0;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace recover
