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

struct RunningChecksum::State {
    XXH3_state_t xxh;
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>())
{
    (void)XXH3_64bits_reset(&state_->xxh);
}

RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(void const* data, std::size_t bytes)
{
    (void)XXH3_64bits_update(&state_->xxh, data, bytes);
}

std::uint64_t RunningChecksum::value() const
{
    return XXH3_64bits_digest(&state_->xxh);
}

}  // namespace tapioca::stage
