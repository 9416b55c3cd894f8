/* What the compiler knows about an array that was passed: where it lies and how many bytes it has. */
#include <ISO_Fortran_binding.h>
#include <stdint.h>

void tapioca_fortran_describe(CFI_cdesc_t const* array, void** address, int64_t* available);

/* `*available` is -1 for an array that is not contiguous, and the largest number for one of assumed size. */
void tapioca_fortran_describe(CFI_cdesc_t const* array, void** address, int64_t* available)
{
    int64_t bytes = (int64_t)array->elem_len;
    int i;
    *address = array->base_addr;
    for (i = 0; i < array->rank; ++i) {
        if (array->dim[i].extent == -1) {
            *available = INT64_MAX;
            return;
        }
        if (array->dim[i].extent > 1 && array->dim[i].sm != bytes) {
            *available = -1;
            return;
        }
        bytes *= array->dim[i].extent;
    }
    *available = bytes;
}
