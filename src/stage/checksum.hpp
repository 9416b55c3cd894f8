// The log's checksum: XXH3, 64 bits, as fast as this processor allows. The result is the same on all processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tapioca::stage {

std::uint64_t checksum_of(void const* data, std::size_t bytes, std::uint64_t seed = 0);

/// The same of bytes that come one after the other, with seed 0.
class RunningChecksum {
public:
    RunningChecksum();
    RunningChecksum(RunningChecksum const&) = delete;
    RunningChecksum& operator=(RunningChecksum const&) = delete;
    ~RunningChecksum();
    void add(void const* data, std::size_t bytes);
    [[nodiscard]] std::uint64_t value() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// @pre the processor has AVX2
std::uint64_t checksum_with_avx2(void const* data, std::size_t bytes, std::uint64_t seed);

}  // namespace tapioca::stage
