// ReadOnce: a variable whose extents overlap, as reading takes it: every byte of the file once, in one layout, and what
// other extents have of it by copies in memory. Layers, which writing needs, would read and walk it once each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/variable.hpp"

namespace tapioca::pattern {

class ReadOnce {
public:
    /// @pre the variable is layered()
    explicit ReadOnce(Variable const& variable);

    /// What it takes at most, while it is made.
    static std::uint64_t most_bytes(Variable const& variable);

    [[nodiscard]] Layout const& layout() const { return layout_; }
    [[nodiscard]] std::size_t copies() const { return copies_.size(); }
    /// Gives all extents what they have in common, after the file's first `received` bytes of the layout have been read
    /// into the variable's buffer at `data`. How many bytes of the variable came from the file.
    [[nodiscard]] std::uint64_t spread(std::byte* data, std::uint64_t received) const;

private:
    struct Copy {
        std::int64_t offset;  ///< in the file
        std::int64_t length;
        std::int64_t from, to;  ///< in the buffer
    };

    Layout layout_;
    std::vector<Copy> copies_;  ///< in the order in which they can be made
};

}  // namespace tapioca::pattern
