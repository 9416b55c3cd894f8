// MPI datatypes as typemaps.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/result.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

/// Elements of a datatype: each is `map`, the next one `extent` bytes further.
struct Datatype {
    pattern::Typemap map;
    std::int64_t lower_bound = 0;
    std::int64_t extent = 0;
};

/// Local; any thread. Decoded once for each derived datatype and kept with it as an attribute, so that asking again
/// costs a lookup. Errc::unsupported, with a reason, for what cannot be decoded.
core::Result<Datatype> datatype_of(MPI_Datatype type);
core::Result<pattern::Typemap> typemap_of(MPI_Datatype type);

}  // namespace tapioca::mpiio
