#include "progress.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "core/units.hpp"

namespace recover {

namespace {

using namespace std::chrono_literals;
constexpr int width = 40;

}  // namespace

void Progress::begin(std::string what, std::uint64_t bytes)
{
    what_ = std::move(what);
    bytes_ = bytes;
    done_ = 0;
    last_ = {};
    if (shown_ && live_) draw();
    last_ = std::chrono::steady_clock::now();
}

void Progress::add(std::uint64_t bytes)
{
    done_ = std::min(bytes_, done_ + bytes);
    auto const now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < (live_ ? 100ms : 5000ms)) return;
    last_ = now;
    draw();
}

void Progress::end()
{
    if (!shown_ || !live_) return;
    done_ = bytes_;
    draw();
    fmt::print(stderr, "\n");
}

void Progress::draw()
{
    auto const part = bytes_ == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(bytes_);
    auto const text = fmt::format("{} {:3.0f} % of {}", what_, 100 * part, tapioca::core::format_bytes(bytes_));
    if (live_)
        fmt::print(stderr, "\r[{:<{}}] {}", std::string(static_cast<std::size_t>(part * width), '#'), width, text);
    else
        fmt::print(stderr, "{}\n", text);
    std::fflush(stderr);
}

}  // namespace recover
