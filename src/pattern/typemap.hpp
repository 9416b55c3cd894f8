// Typemap: the structure of a datatype, as blocks, loops and sequences of bytes. It uses no MPI and is never expanded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "pattern/variable.hpp"

namespace tapioca::pattern {

/// The bytes that one element of a datatype covers: displacements in the order in which the datatype lists them ("data
/// order"). A value: immutable and cheap to copy. It is built in a normal form (adjacent blocks become one, loops of
/// one turn vanish, equal parts at equal distances become a loop), so that equal structures compare equal.
class Typemap {
public:
    struct TypeNode;
    struct Member;
    struct Block {
        std::int64_t displacement;
        std::int64_t length;
    };

    /// No bytes at all.
    Typemap();
    /// `length` bytes at displacement 0.
    static Typemap block(std::int64_t length);
    /// `count` times `map`, `step` bytes apart; `step` may be negative or 0.
    static Typemap loop(std::int64_t count, std::int64_t step, Typemap const& map);
    /// Blocks one after the other in data order. This takes less work than a sequence of blocks.
    static Typemap list(std::vector<Block> const& blocks);
    /// Parts one after the other in data order.
    static Typemap sequence(std::vector<Member> const& parts);
    [[nodiscard]] Typemap shifted(std::int64_t displacement) const;

    [[nodiscard]] std::int64_t bytes() const;   ///< number of data bytes
    [[nodiscard]] std::int64_t begin() const;   ///< lowest displacement of a byte; 0 if there is none
    [[nodiscard]] std::int64_t end() const;     ///< one past the highest
    [[nodiscard]] std::int64_t blocks() const;  ///< contiguous stretches in data order
    /// True if all bytes are in one piece, which begins at begin().
    [[nodiscard]] bool contiguous() const;
    /// True if displacements only grow in data order and no byte occurs twice, as a file view requires.
    [[nodiscard]] bool ascending() const;
    [[nodiscard]] std::uint64_t hash() const;
    friend bool operator==(Typemap const&, Typemap const&);

    /// root() is the structure, moved so that its first byte in data order is at displacement 0. origin() is the real
    /// displacement of that byte.
    [[nodiscard]] std::shared_ptr<TypeNode const> const& root() const { return root_; }
    [[nodiscard]] std::int64_t origin() const { return origin_; }
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const;
    explicit Typemap(std::shared_ptr<TypeNode const> root, std::int64_t origin = 0);

private:
    std::shared_ptr<TypeNode const> root_;
    std::int64_t origin_ = 0;
};

struct Typemap::Member {
    std::int64_t displacement;
    Typemap map;
};

/// Copies data bytes [from, from + bytes) of `map`, which lies at `base`, to `packed`. This is fast for loops of small
/// blocks.
void pack(Typemap const& map, std::byte const* base, std::int64_t from, std::int64_t bytes, std::byte* packed);
/// The reverse.
void unpack(Typemap const& map, std::byte* base, std::int64_t from, std::int64_t bytes, std::byte const* packed);

/// A file view: `tile` is repeated for ever, `extent` bytes apart, starting at `displacement`.
struct TiledView {
    std::int64_t displacement = 0;
    std::int64_t extent = 1;
    Typemap tile = Typemap::block(1);

    /// Offset in the file of data byte `position`.
    [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;
};

/// Data bytes [from, from + bytes) of a view, without the place in the file where they begin. Two accesses of the same
/// shape are the same pattern, shifted by the difference of their origins.
struct Shape {
    Typemap tile;
    std::int64_t extent = 0;
    std::int64_t phase = 0;  ///< position of the first byte in its tile; 0 if the view is contiguous
    std::int64_t bytes = 0;
    /// The approximate number of contiguous stretches.
    [[nodiscard]] std::int64_t pieces() const;
    friend bool operator==(Shape const&, Shape const&) = default;
};
struct Access {
    Shape shape;
    std::int64_t origin = 0;
};
/// Fails (Errc::unsupported, with a short reason) if the view has bytes in an order or with overlaps that layouts
/// cannot have, or offsets outside 0 to 2^63.
core::Result<Access> access_of(TiledView const& view, std::int64_t from, std::int64_t bytes);

/// The access as a variable, with its bytes packed in data order. The structure is kept, so the memory that it takes
/// depends on the datatype and not on the number of tiles. If several loops follow each other, loops of up to
/// `expanded` blocks in total become a list, and each longer one gets a layout of its own.
Variable variable_of(Access const& access, std::int64_t expanded = 4096);

}  // namespace tapioca::pattern
