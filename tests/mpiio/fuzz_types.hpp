// Random datatypes whose bytes the fuzzer computes itself, without asking MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuzz {

/// The same numbers from the same seed on every rank and machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    /// Uniform in [low, high]; low if high is less.
    std::int64_t between(std::int64_t low, std::int64_t high);
    bool chance(int percent) { return between(0, 99) < percent; }

private:
    std::uint64_t state_;
};

/// Bytes [at, at + length).
struct Segment {
    std::int64_t at = 0;
    std::int64_t length = 0;
};
using Segments = std::vector<Segment>;

/// A datatype as the standard defines it: a type map in order, and its bounds.
struct Type {
    std::string text;   ///< how it was made, for people
    Segments segments;  ///< in the order of the type map, neighbours joined
    std::int64_t lower = 0;
    std::int64_t upper = 0;
    std::int64_t size = 0;
    bool named = false;
    bool bounded = false;                ///< somewhere in it bounds are set, as by resized, subarray and darray
    std::function<MPI_Datatype()> make;  ///< a new datatype, not committed; a named one must not be freed

    std::int64_t extent() const { return upper - lower; }
};
using TypePtr = std::shared_ptr<Type const>;

TypePtr named(MPI_Datatype type, char const* name, std::int64_t size);
/// MPI_BYTE and its like; one of six.
TypePtr random_named(Random& random);
TypePtr contiguous(int count, TypePtr const& child);
TypePtr vector(int count, int length, int stride, TypePtr const& child);
TypePtr resized(TypePtr const& child, std::int64_t lower, std::int64_t extent);
TypePtr subarray(std::vector<int> sizes, std::vector<int> subsizes, std::vector<int> starts, int order,
                 TypePtr const& child);
/// The part of process `rank` of a grid; block[d] 0: not distributed, -1: blocks, k > 0: cyclic in pieces of k.
TypePtr darray(int rank, std::vector<int> sizes, std::vector<int> block, std::vector<int> grid, int order,
               TypePtr const& child);

/// A type of any kind made of `child`, nested up to `depth` times; its data may lie in any order, below zero too.
/// With `simple` there is no random darray of more than named types, bounds are set by the outermost constructor only,
/// no block is empty, and a memory type starts at zero.
TypePtr random_memory_type(Random& random, TypePtr const& child, int depth, bool simple);
/// A type that may be a file type over `etype`: nothing below zero, in order, without overlap, also when tiled.
/// With `careful` there is no empty block, no random darray of more than named types, no negative lower bound.
TypePtr random_file_type(Random& random, TypePtr const& etype, int depth, bool simple, bool careful);

/// Whether `count` of them name a byte twice.
bool overlaps(Type const& type, std::int64_t count);
/// From the first to the last byte that `count` of them name; {0, 0} where they name none.
Segment span_of(Type const& type, std::int64_t count);

/// A committed datatype that is freed at the end.
class Committed {
public:
    explicit Committed(TypePtr const& type);
    ~Committed();
    Committed(Committed const&) = delete;
    Committed& operator=(Committed const&) = delete;
    MPI_Datatype get() const { return type_; }

private:
    MPI_Datatype type_;
    bool named_;
};

}  // namespace fuzz
