/* The version of these headers, for C and C++. TAPIOCA_Get_version (in C++: tapioca::version()) returns the version of
 * the library that the program runs with. CMake refuses to build if this differs from the version of the project. */
#ifndef TAPIOCA_VERSION_H
#define TAPIOCA_VERSION_H

#define TAPIOCA_VERSION_MAJOR 0
#define TAPIOCA_VERSION_MINOR 1
#define TAPIOCA_VERSION_PATCH 0
#define TAPIOCA_VERSION_STRING "0.1.0"

/* The version as a number, for comparisons: #if TAPIOCA_VERSION >= TAPIOCA_MAKE_VERSION(0, 2, 0) */
#define TAPIOCA_MAKE_VERSION(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define TAPIOCA_VERSION TAPIOCA_MAKE_VERSION(TAPIOCA_VERSION_MAJOR, TAPIOCA_VERSION_MINOR, TAPIOCA_VERSION_PATCH)

#endif
