# What the public headers say of this build: the version, and the MPI.

# version.h can be used without CMake, so it is not generated. Here it is compared with the version of the project.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tapioca/version.h)
file(READ ${PROJECT_SOURCE_DIR}/include/tapioca/version.h version_header)
foreach(line "MAJOR ${PROJECT_VERSION_MAJOR}" "MINOR ${PROJECT_VERSION_MINOR}" "PATCH ${PROJECT_VERSION_PATCH}"
    "STRING \"${PROJECT_VERSION}\"")
  string(FIND "${version_header}" "#define TAPIOCA_VERSION_${line}\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "include/tapioca/version.h must have the line `#define TAPIOCA_VERSION_${line}`: "
      "the version of the project is ${PROJECT_VERSION}")
  endif()
endforeach()

# TAPIOCA_OPEN_MPI, and a header that refuses other MPIs; there is one for each build, beside the headers of the source.
if(NOT TAPIOCA_FUZZ)
  include(CheckSymbolExists)
  set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
  check_symbol_exists(OMPI_MAJOR_VERSION mpi.h TAPIOCA_OPEN_MPI)
  unset(CMAKE_REQUIRED_LIBRARIES)
  set(TAPIOCA_BUILT_FOR_OPEN_MPI ${TAPIOCA_OPEN_MPI})
  configure_file(cmake/built_for.h.in ${PROJECT_BINARY_DIR}/include/tapioca/built_for.h)
endif()
