// DatatypeEnvelope: what MPI tells of how a datatype was made, in one form for all constructors and counts of any size.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "core/result.hpp"

namespace tapioca::mpiio {

/// Numbers are in the order of the constructor's arguments: displacements in bytes among the addresses, all else among
/// the integers. Owns the datatypes that MPI hands out with them.
struct DatatypeEnvelope {
    DatatypeEnvelope() = default;
    DatatypeEnvelope(DatatypeEnvelope const&) = delete;
    DatatypeEnvelope& operator=(DatatypeEnvelope const&) = delete;
    DatatypeEnvelope(DatatypeEnvelope&& other) noexcept;
    DatatypeEnvelope& operator=(DatatypeEnvelope&&) = delete;
    ~DatatypeEnvelope();

    int combiner = MPI_COMBINER_NAMED;
    std::vector<std::int64_t> integers;
    std::vector<std::int64_t> addresses;
    std::vector<MPI_Datatype> types;
};

/// Local.
core::Result<DatatypeEnvelope> contents_of(MPI_Datatype type);

/// Made in a way that MPI libraries are known to move rightly: contiguous, vectors and subarrays of what MPI has by
/// itself, and no more than two of them in each other. Local.
bool is_simple(MPI_Datatype type);

/// One that MPI has by itself, and that must not be freed.
bool predefined(MPI_Datatype type);

}  // namespace tapioca::mpiio
