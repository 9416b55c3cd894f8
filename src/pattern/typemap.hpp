// Typemap: the structure of a datatype, as blocks, loops and sequences of bytes. No MPI; nothing is ever expanded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "pattern/variable.hpp"

namespace tapioca::pattern {

/// Bytes at displacements, in the order in which they are named ("data order"): what one element of a datatype covers.
/// A value: immutable, cheap to copy. Building brings it into a normal form (blocks that touch become one, loops of
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
    /// `count` times `map`, `step` bytes apart (may be negative or 0).
    static Typemap loop(std::int64_t count, std::int64_t step, Typemap const& map);
    /// Blocks one after the other; less work than a sequence of them.
    static Typemap list(std::vector<Block> const& blocks);
    /// Parts one after the other in data order.
    static Typemap sequence(std::vector<Member> const& parts);
    [[nodiscard]] Typemap shifted(std::int64_t displacement) const;

    [[nodiscard]] std::int64_t bytes() const;   ///< of data
    [[nodiscard]] std::int64_t begin() const;   ///< lowest displacement of a byte; 0 if there is none
    [[nodiscard]] std::int64_t end() const;     ///< one past the highest
    [[nodiscard]] std::int64_t blocks() const;  ///< contiguous stretches that a walk in data order meets
    /// All bytes in one piece: bytes() of them at begin().
    [[nodiscard]] bool contiguous() const;
    /// In data order displacements only grow and no byte is named twice: fit for a file view.
    [[nodiscard]] bool ascending() const;
    [[nodiscard]] std::uint64_t hash() const;
    friend bool operator==(Typemap const&, Typemap const&);

    /// The structure, whose first byte in data order is at displacement 0; and where that byte really is.
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

/// Copies data bytes [from, from + bytes) of `map`, which lies at `base`, to `packed`. Fast for loops of small blocks.
void pack(Typemap const& map, std::byte const* base, std::int64_t from, std::int64_t bytes, std::byte* packed);
/// The reverse.
void unpack(Typemap const& map, std::byte* base, std::int64_t from, std::int64_t bytes, std::byte const* packed);

/// A file view: `tile` repeated for ever, `extent` bytes apart, from `displacement` on.
struct TiledView {
    std::int64_t displacement = 0;
    std::int64_t extent = 1;
    Typemap tile = Typemap::block(1);

    /// Offset in the file of data byte `position`.
    [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;
};

/// Data bytes [from, from + bytes) of a view, apart from where in the file they begin: equal shapes at different
/// origins are the same pattern, shifted. origin() of two accesses of the same shape differ by that shift.
struct Shape {
    Typemap tile;
    std::int64_t extent = 0;
    std::int64_t phase = 0;  ///< first byte within its tile; 0 where the view is contiguous
    std::int64_t bytes = 0;
    /// Contiguous stretches that it is made of, about.
    [[nodiscard]] std::int64_t pieces() const;
    friend bool operator==(Shape const&, Shape const&) = default;
};
struct Access {
    Shape shape;
    std::int64_t origin = 0;
};
/// Fails (Errc::unsupported, with a short reason) where the view names bytes in an order or with overlaps that layouts
/// cannot have, or offsets outside 0 to 2^63.
core::Result<Access> access_of(TiledView const& view, std::int64_t from, std::int64_t bytes);

/// The access as a variable, with its bytes packed in data order. Kept as structure: memory in proportion to the
/// datatype, not to the number of tiles. Where several loops follow each other, those of up to `expanded` blocks in all
/// become a list and each longer one gets a layout of its own.
Variable variable_of(Access const& access, std::int64_t expanded = 4096);

}  // namespace tapioca::pattern
