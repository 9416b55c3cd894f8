// The oracle: a file in memory, with the MPI standard's rules, for all ranks at once.
#pragma once

#include "fuzz_types.hpp"

namespace fuzz {

using Bytes = std::vector<unsigned char>;

struct View {
    std::int64_t displacement = 0;
    TypePtr etype;
    TypePtr filetype;
};

/// Where in the file the bytes [first, first + length) of the view's data lie, in order.
Segments extents_of(View const& view, std::int64_t first, std::int64_t length);
/// The standard's end of file in a view, in etypes: the first etype that starts behind the last byte of the file.
std::int64_t end_in_view(View const& view, std::int64_t size);

/// One file, and what each rank of its communicator knows about it.
class Model {
public:
    bool exists = false;
    Bytes bytes;
    /// The state of a byte. The standard does not define the contents of holes; MPI libraries may have filled some of
    /// them, on both files or only on the one that is left to them.
    enum State : unsigned char { hole, written, alone_loose_hole, loose_hole };
    Bytes defined;

    // Of the handle that is open.
    bool open = false;
    int amode = 0;
    bool atomic = false;
    std::vector<int> members;  ///< ranks of the world, in the order of the file's communicator
    std::vector<View> view;    ///< by rank of the world, as is position
    std::vector<std::int64_t> position;
    std::int64_t shared = 0;

    std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }
    bool reads() const { return (amode & MPI_MODE_WRONLY) == 0; }
    bool writes() const { return (amode & MPI_MODE_RDONLY) == 0; }
    bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }
    bool is_member(int rank) const;
    bool same_view_everywhere() const;

    void opened(int mode, std::vector<int> ranks, int world);
    void set_view(std::vector<View> views);
    void resize(std::int64_t size);
    /// Writes `data` to `extents`.
    void write(int rank, Segments const& extents, Bytes const& data);
    /// Fills `data` with the contents and `sure` with their State. Returns the number of bytes, up to the end of the
    /// file.
    std::int64_t read(int rank, Segments const& extents, Bytes& data, Bytes& sure);

    /// Whether the standard leaves the result undefined unless the ranks synchronise first.
    bool needs_sync(int rank, bool writes, Segments const& extents) const;
    /// Whether other ranks have extended the file since the last synchronisation.
    bool size_needs_sync(int rank) const;
    void synchronised();

private:
    struct Mark {
        std::uint32_t readers = 0;
        std::uint32_t writers = 0;
    };
    std::vector<Mark> marks_;
    std::uint32_t extenders_ = 0;
    std::int64_t synced_size_ = 0;
};

}  // namespace fuzz
