// MPI datatypes as typemaps.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/result.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

/// A datatype: each element is `map`, and the next element is `extent` bytes further on.
struct Datatype {
    pattern::Typemap map;
    std::int64_t lower_bound = 0;
    std::int64_t extent = 0;
};

/// Decodes a datatype. Local; any thread. A derived datatype is decoded once, and the result is kept with it as an
/// attribute, so that later calls cost a lookup. Fails with Errc::unsupported, and a reason, if it cannot be decoded.
core::Result<Datatype> datatype_of(MPI_Datatype type);
core::Result<pattern::Typemap> typemap_of(MPI_Datatype type);

}  // namespace tapioca::mpiio
