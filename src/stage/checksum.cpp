#include "stage/checksum.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tapioca::stage {

std::uint64_t checksum_of(void const* data, std::size_t bytes, std::uint64_t seed)
{
#ifdef TAPIOCA_AVX2
    static bool const avx2 = __builtin_cpu_supports("avx2");
    if (avx2 && bytes > 256) return checksum_with_avx2(data, bytes, seed);  // XXH3 does not vectorise short inputs
#endif
    return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace tapioca::stage
