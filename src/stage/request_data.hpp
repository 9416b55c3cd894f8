// RequestData: the bytes of a request in the program's memory, packed or scattered. Local.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/result.hpp"
#include "pattern/layout.hpp"

namespace tapioca::stage {

class RequestData {
public:
    RequestData(std::byte const* packed) : first_(packed) {}
    /// `places` says where the bytes lie from `first` on; its offsets are their places in the packed order.
    RequestData(std::byte const* first, pattern::Layout const* places) : first_(first), places_(places) {}

    [[nodiscard]] bool empty() const { return !first_; }
    /// The bytes, if they are packed; otherwise null.
    [[nodiscard]] std::byte const* packed() const { return places_ ? nullptr : first_; }

    using Store = std::function<core::Status(std::uint64_t position, std::span<std::byte const> chunk)>;
    /// Passes the first `bytes` bytes in their packed order to `store`: packed data as a whole, scattered data in
    /// chunks that stay in the cache. Returns the checksum of all of them.
    core::Result<std::uint64_t> store(std::uint64_t bytes, Store const& store) const;

private:
    std::byte const* first_;
    pattern::Layout const* places_ = nullptr;  ///< null: packed
};

}  // namespace tapioca::stage
