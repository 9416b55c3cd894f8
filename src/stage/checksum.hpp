// The log's checksum: XXH3, 64 bits, as fast as this processor allows. The result is the same on all processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapioca::stage {

std::uint64_t checksum_of(void const* data, std::size_t bytes, std::uint64_t seed = 0);

/// @pre the processor has AVX2
std::uint64_t checksum_with_avx2(void const* data, std::size_t bytes, std::uint64_t seed);

}  // namespace tapioca::stage
