// SetWriter: adds chunks to a set, on behalf of a group of ranks with a subfile of its own. All calls are local. Every
// rank of the group has a SetWriter and comes to the same positions; the group's first rank also writes the journal.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/descriptor.hpp"
#include "subfile/format.hpp"

namespace tapioca::subfile {

class SetWriter {
public:
    struct Place {
        std::string directory;  ///< of the set
        SetId identity = {};
        std::uint64_t generation = 0;  ///< that the index will have
        std::uint32_t subfile = 0;     ///< of this group
        std::int64_t block_bytes = 0;  ///< chunks begin at multiples of this
        bool first = false;            ///< this rank is the first of its group
        std::string on_tier = {};      ///< directory of the subfile, if it lies on a tier
    };
    SetWriter(Place place, std::uint64_t epoch)
        : place_(std::move(place)), epoch_(epoch), journal_number_(place_.subfile)
    {
    }

    [[nodiscard]] std::uint32_t subfile() const { return place_.subfile; }
    /// Goes on in another subfile, which is empty. The journal stays the same.
    void move_on(std::uint32_t subfile, std::string on_tier);
    /// Bytes of the subfile so far, those of chunks that could not be written among them.
    [[nodiscard]] std::uint64_t end() const { return end_; }
    /// On the group's first rank: whether the set has a chunk in this subfile.
    [[nodiscard]] bool has_chunks() const { return has_chunks_; }
    [[nodiscard]] std::string path() const;
    /// Where the subfile lies.
    [[nodiscard]] std::string const& directory() const
    {
        return place_.on_tier.empty() ? place_.directory : place_.on_tier;
    }

    /// A new form, for chunks of this many bytes. Returns its number, the same on all ranks of the group.
    std::uint32_t add_form(std::uint64_t data_bytes);
    /// On the group's first rank, for a form that was added: the entries of all its ranks, in the order of the ranks,
    /// and whether no byte of the file is written twice, here or by another group.
    struct Description {
        std::vector<std::byte> entries;
        bool disjoint = false;
    };
    void describe(std::uint32_t form, Description description);
    /// On the group's first rank: a form that was described like this; -1 if there is none.
    [[nodiscard]] std::int64_t find_form(Description const& description) const;

    /// The next collective write, or change of size, of all ranks of the file begins.
    void advance() { ++epoch_; }
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    /// Where the chunk of this form and shift goes in the subfile: where it is already, or behind everything else.
    std::uint64_t position_of(std::uint32_t form, std::int64_t shift);
    /// The chunk that position_of() was last asked about is written. The first rank notes it in the journal.
    core::Status note_chunk(std::uint32_t form, std::int64_t shift);
    /// The file is shortened. To be called on the first rank of one group.
    core::Status note_cut(std::int64_t size);
    /// Makes the journal durable.
    core::Status sync();
    /// Closes the journal. Nothing more can be noted.
    core::Status close();

private:
    /// Tells descriptions apart: two checksums, the size, and whether it is disjoint.
    using DescriptionKey = std::array<std::uint64_t, 4>;
    static DescriptionKey key_of(Description const& description);
    core::Status append(std::span<std::byte const> records);

    Place place_;
    std::uint64_t epoch_;
    std::vector<std::uint64_t> forms_;  ///< bytes of a chunk of each form
    std::map<std::uint32_t, Description> undescribed_;
    std::map<DescriptionKey, std::uint32_t> described_;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint64_t> positions_;  ///< by form and shift
    std::uint64_t end_ = 0;                                                      ///< of the subfile
    bool has_chunks_ = false;
    std::uint32_t journal_number_;  ///< that of the first subfile
    core::Descriptor journal_;
    bool name_is_durable_ = true;  ///< of the journal
    std::uint64_t journal_end_ = 0;
};

}  // namespace tapioca::subfile
