// A case: steps on one or two files, made from a seed, with the results that the standard requires.
#pragma once

#include <array>
#include <utility>

#include "fuzz_model.hpp"

namespace fuzz {

enum class Do {
    Open,
    Close,
    View,
    Data,
    Seek,
    SeekShared,
    SetSize,
    Preallocate,
    Sync,
    Atomicity,
    Query,
    SetInfo,
    Null
};
enum class Where { At, Individual, Shared };
/// With the shared pointer, All means ordered, and Split means ordered_begin and ordered_end.
enum class How { Blocking, Nonblocking, All, NonblockingAll, Split };

/// What is done on the file that is left to the MPI library, if the MPI library would not survive the access: the same;
/// the same with packed memory; or the bytes are moved without MPI.
enum class Alone { Same, Packed, Direct };

/// One rank's share of a step.
struct Part {
    bool takes_part = false;
    TypePtr type;
    int count = 0;
    std::int64_t offset = 0;
    int whence = MPI_SEEK_SET;
    bool bottom = false;       ///< MPI_BOTTOM with an absolute address
    bool ask_byte = false;     ///< a query may ask where an offset is in the file
    bool freed_early = false;  ///< the datatype is freed before the access is complete
    View view;
    Bytes buffer;             ///< whole, with gaps and guard zones
    std::int64_t origin = 0;  ///< where in the buffer the address zero of the type lies

    // The required results.
    std::int64_t moved = 0;
    Segments extents;  ///< of the file
    Bytes after;       ///< the buffer
    // Bytes of the buffer to which no byte of the file belongs, to which a hole of the file belongs, and to which a
    // hole belongs that the MPI library may have filled with anything.
    std::vector<std::int64_t> unread;
    std::vector<std::int64_t> holes;
    std::vector<std::int64_t> loose_holes;
    std::int64_t position = 0;
    std::vector<std::int64_t> values;
};

struct Step {
    Do what = Do::Sync;
    int file = 0;
    bool write = false;
    Where where = Where::At;
    How how = How::Blocking;
    bool served = false;  ///< the library under test does it itself
    Alone alone = Alone::Same;
    bool alone_blocks = false;  ///< a nonblocking collective access, which is done there by the blocking call
    bool in_file = false;       ///< what it writes is in the file then, also if that is staged, with all before it
    bool wild_view = false;     ///< some rank's view is not simple
    bool fails = false;         ///< on every rank, with the same class as on the MPI library alone
    std::vector<Part> parts;
    std::int64_t size = 0;  ///< of set_size, preallocate; the offset of seek_shared; the flag of set_atomicity
    int amode = 0;
    std::vector<int> members;  ///< of an open
    std::vector<std::pair<std::string, std::string>> hints;
    std::int64_t shared = -1;  ///< the shared pointer afterwards, where it is looked at
    bool look_at_file = false;
    bool exists = true;
    std::shared_ptr<Bytes const> contents;  ///< after it; of every step that may change it
    std::shared_ptr<Bytes const> defined;
    std::string text;
    std::string features;  ///< of a data access, all ranks together; see features_of
};

struct Case {
    std::uint64_t seed = 0;
    std::vector<Bytes> before;  ///< contents of the files that exist before the case
    std::vector<bool> existed;
    std::vector<Step> steps;
};

/// What the MPI library cannot do without crashing, hanging or losing data; see fuzz_known.hpp. Accesses that the
/// library under test does itself are made nevertheless.
struct Avoid {
    // Never done.
    bool sequential = false;
    bool preallocate = false;
    bool subcommunicators = false;         ///< but for MPI_COMM_SELF
    bool failing_accesses = false;         ///< but for a negative count in a blocking independent access
    bool nonblocking_collectives = false;  ///< even one at a time
    bool types_freed_early = false;        ///< in nonblocking collective accesses
    bool atomicity = false;
    bool external32 = false;
    bool shared_alone = false;  ///< independent accesses at the shared pointer of several ranks
    bool without_mpi = false;   ///< accesses to the file as it lies in the file system
    bool cuts_beside = false;   ///< a file is made shorter while it has another handle
    bool odd_views = false;     ///< with empty blocks, a negative lower bound or darrays of more than named types

    // Done only by the library under test.
    bool nested_memory = false;  ///< memory types of derived types
    bool empty_types = false;    ///< size zero
    bool meeting = false;        ///< collective accesses of ranks that meet in the file
    bool pointers = false;       ///< individual ones, in views that are not simple
    bool short_reads = false;    ///< nonblocking and split ones behind the end of the file, or accesses of nothing

    /// Not to be avoided: the library under test itself does nonblocking collective and ordered accesses.
    bool serves_nonblocking = false;
    bool serves_ordered = false;
};

/// The case of `seed` for `ranks` ranks. Local; the same on every rank, except for buffers after reads, which are
/// computed only for rank `me`.
Case make_case(std::uint64_t seed, int ranks, int me, Avoid const& avoid);

/// The bytes that `count` of a type name in memory, in order.
Segments bytes_in_memory(Type const& type, std::int64_t count);
/// To and from one piece of data.
Bytes gather(Bytes const& buffer, std::int64_t origin, Segments const& memory);
void scatter(Bytes const& data, Bytes& buffer, std::int64_t origin, Segments const& memory);

}  // namespace fuzz
