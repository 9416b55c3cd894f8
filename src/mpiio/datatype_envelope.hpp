// DatatypeEnvelope: how a datatype was made, according to MPI, in one form for all constructors and counts of any size.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "core/result.hpp"

namespace tapioca::mpiio {

/// Numbers are in the order of the constructor's arguments: displacements in bytes are in `addresses`, all others in
/// `integers`. Owns the datatypes that MPI returns.
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

/// True if the datatype was made in a way that MPI libraries are known to handle correctly: contiguous, vector and
/// subarray types of predefined types, nested at most twice. Local.
bool is_simple(MPI_Datatype type);

/// True if the datatype is predefined and must not be freed.
bool predefined(MPI_Datatype type);

}  // namespace tapioca::mpiio
