/* Describes where the elements of an array argument lie, as the compiler knows it. */
#include "../src/api/fortran_array.h"

#include <ISO_Fortran_binding.h>

void tapioca_fortran_describe(CFI_cdesc_t const* array, tapioca_fortran_array* description);

void tapioca_fortran_describe(CFI_cdesc_t const* array, tapioca_fortran_array* description)
{
    int64_t bytes = (int64_t)array->elem_len;
    int i;
    description->address = array->base_addr;
    description->element_size = bytes;
    description->rank = array->rank;
    description->contiguous = 1;
    for (i = 0; i < array->rank; ++i) {
        description->extent[i] = array->dim[i].extent;
        description->step[i] = array->dim[i].sm;
        if (array->dim[i].extent == -1) { /* an array of assumed size, which is contiguous */
            description->available = INT64_MAX;
            return;
        }
        if (array->dim[i].extent > 1 && array->dim[i].sm != bytes) description->contiguous = 0;
        bytes *= array->dim[i].extent;
    }
    description->available = bytes;
}
