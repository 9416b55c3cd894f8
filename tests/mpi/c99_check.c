/* tapioca.h as the first header of a C99 program compiled with -pedantic -Werror: that this compiles is the test. */
#include <tapioca/tapioca.h>

#if TAPIOCA_VERSION < TAPIOCA_MAKE_VERSION(0, 1, 0) || TAPIOCA_VERSION >= TAPIOCA_MAKE_VERSION(1000, 0, 0)
#error "the preprocessor cannot compare versions"
#endif

/* What a call returns to C, for the C++ test to compare. */
int tapioca_c99_check(void)
{
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    TAPIOCA_Status* const ignored = TAPIOCA_STATUS_IGNORE;
    if (file || ignored) return -1;
    return TAPIOCA_Finalize(file);
}
