// Variable: one declared variable of one rank, checked and brought into layouts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tapioca/pattern.hpp>

#include "core/result.hpp"
#include "pattern/layout.hpp"

namespace tapioca::pattern {

/// Layouts are applied in their order: where a rank's own extents overlap, they are spread over
/// several layouts so that each is free of overlap and the later extent comes later.
class Variable {
public:
    /// @pre the layouts cover every byte of the buffer once
    Variable(std::vector<Layout> layouts, std::int64_t bytes)
        : layouts_(std::move(layouts)), bytes_(static_cast<std::uint64_t>(bytes))
    {
    }
    /// `number` is the variable's number, for messages. A bad value makes a variable without data
    /// whose status() tells what is wrong.
    static Variable from_extents(std::size_t number, std::span<Extent const> extents);
    static Variable from_subarray(std::size_t number, Subarray const& array);
    static Variable failed(core::Status status) { return Variable(std::move(status)); }

    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] std::vector<Layout> const& layouts() const { return layouts_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// The subarray that it was made from, if it was.
    [[nodiscard]] Subarray const* declared() const { return declared_.get(); }
    /// True if its own extents overlap, and are spread over layouts for that reason: lists without dimensions.
    [[nodiscard]] bool layered() const { return layered_; }
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const;

private:
    explicit Variable(core::Status status) : status_(std::move(status)) {}

    core::Status status_;
    std::vector<Layout> layouts_;
    std::uint64_t bytes_ = 0;
    bool layered_ = false;
    std::shared_ptr<Subarray const> declared_;
};

}  // namespace tapioca::pattern
