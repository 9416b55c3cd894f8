// Variable: one declared variable of one rank, checked and brought into layouts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tapioca/pattern.hpp>

#include "core/result.hpp"
#include "pattern/layout.hpp"

namespace tapioca::pattern {

/// How messages refer to a variable.
std::string called(std::size_t number, std::string_view name);

/// A failure if a subarray is not valid. The text continues a sentence that begins with the name of the subarray:
/// "leaves the array in dimension 1: ...".
core::Status check_subarray(Subarray const& array);

/// Layouts are applied in their order. If a rank's own extents overlap, they are spread over several layouts, so that
/// no layout overlaps itself and the later extent comes later.
class Variable {
public:
    /// @pre the layouts cover every byte of the buffer once
    Variable(std::vector<Layout> layouts, std::int64_t bytes)
        : layouts_(std::move(layouts)), bytes_(static_cast<std::uint64_t>(bytes))
    {
    }
    /// The variable's number and name are for messages. A bad value makes a variable without data, whose status() says
    /// what is wrong.
    static Variable from_extents(std::size_t number, std::span<Extent const> extents, std::string_view name = {});
    static Variable from_subarray(std::size_t number, Subarray const& array, std::string_view name = {});
    static Variable failed(core::Status status) { return Variable(std::move(status)); }
    /// The same variable with a name, or without one if `name` is empty.
    Variable named(std::string_view name) &&
    {
        name_ = name.empty() ? nullptr : std::make_shared<std::string const>(name);
        return std::move(*this);
    }
    /// The same bytes of the file, but elsewhere in memory: `layouts` cover what this variable's layouts cover, with
    /// other positions in the buffer.
    [[nodiscard]] Variable relaid(std::vector<Layout> layouts) const
    {
        Variable other(std::move(layouts), static_cast<std::int64_t>(bytes_));
        other.name_ = name_;
        other.layered_ = layered_;
        return other;
    }

    /// How messages refer to it: "variable 2", or "variable 2 'velocity'" if it has a name.
    [[nodiscard]] std::string called(std::size_t number) const { return pattern::called(number, name()); }
    [[nodiscard]] std::string_view name() const { return name_ ? std::string_view(*name_) : std::string_view(); }
    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] std::vector<Layout> const& layouts() const { return layouts_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// The subarray that it was made from, or null if it was not made from one.
    [[nodiscard]] Subarray const* declared() const { return declared_.get(); }
    /// True if its own extents overlap and are therefore spread over several layouts, which are lists without
    /// dimensions.
    [[nodiscard]] bool layered() const { return layered_; }
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const;

private:
    explicit Variable(core::Status status) : status_(std::move(status)) {}

    core::Status status_;
    std::shared_ptr<std::string const> name_;  ///< null if it has no name
    std::vector<Layout> layouts_;
    std::uint64_t bytes_ = 0;
    bool layered_ = false;
    std::shared_ptr<Subarray const> declared_;
};

}  // namespace tapioca::pattern
