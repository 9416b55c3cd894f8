// AddressSanitizer's defaults for the fuzzers: freed memory is used again soon, which keeps it in the cache.
#include <sanitizer/asan_interface.h>

extern "C" char const* __asan_default_options()
{
    return "quarantine_size_mb=8";
}
