/* An array as the Fortran compiler describes it. fortran/describe.c fills this struct from the compiler's descriptor.
 */
#ifndef TAPIOCA_FORTRAN_ARRAY_H
#define TAPIOCA_FORTRAN_ARRAY_H

#include <stdint.h>

enum { tapioca_fortran_dimensions = 15 }; /* the most that Fortran has */

/* The type `array_description` of fortran/interfaces.inc has the same members. */
typedef struct tapioca_fortran_array {
    void* address;     /* address of the first element */
    int64_t available; /* bytes of all elements; INT64_MAX if the size is not known */
    int64_t element_size;
    int rank;
    int contiguous;                             /* 0: the elements do not lie side by side */
    int64_t extent[tapioca_fortran_dimensions]; /* elements in each dimension, fastest first */
    int64_t step[tapioca_fortran_dimensions];   /* bytes from one element to the next; may be negative */
} tapioca_fortran_array;

#endif
