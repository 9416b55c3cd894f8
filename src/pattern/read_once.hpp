// ReadOnce: how a variable whose extents overlap is read. Every byte of the file is read once, with one layout; extents
// that share bytes get them by copies in memory. With the layers that writing needs, shared bytes would be read several
// times.
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

    /// The most memory that it takes while it is made.
    static std::uint64_t most_bytes(Variable const& variable);

    [[nodiscard]] Layout const& layout() const { return layout_; }
    [[nodiscard]] std::size_t copies() const { return copies_.size(); }
    /// Copies shared bytes to all extents that have them, after the first `received` bytes of the layout were read into
    /// the variable's buffer at `data`. Returns how many bytes of the variable came from the file.
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
