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

/// What messages call a variable.
std::string called(std::size_t number, std::string_view name);

/// What is wrong with a subarray, in words that follow its name: "leaves the array in dimension 1: ...".
core::Status check_subarray(Subarray const& array);

/// Layouts are applied in their order: where a rank's own extents overlap, they are spread over
/// several layouts so that each is free of overlap and the later extent comes later.
class Variable {
public:
    /// @pre the layouts cover every byte of the buffer once
    Variable(std::vector<Layout> layouts, std::int64_t bytes)
        : layouts_(std::move(layouts)), bytes_(static_cast<std::uint64_t>(bytes))
    {
    }
    /// `number` is the variable's number, for messages, as is the name. A bad value makes a variable without data
    /// whose status() tells what is wrong.
    static Variable from_extents(std::size_t number, std::span<Extent const> extents, std::string_view name = {});
    static Variable from_subarray(std::size_t number, Subarray const& array, std::string_view name = {});
    static Variable failed(core::Status status) { return Variable(std::move(status)); }
    /// The same with a name; none if that is empty.
    Variable named(std::string_view name) &&
    {
        name_ = name.empty() ? nullptr : std::make_shared<std::string const>(name);
        return std::move(*this);
    }
    /// The same bytes of the file, but elsewhere in memory: `layouts` are this one's, with other places in the buffer.
    [[nodiscard]] Variable relaid(std::vector<Layout> layouts) const
    {
        Variable other(std::move(layouts), static_cast<std::int64_t>(bytes_));
        other.name_ = name_;
        other.layered_ = layered_;
        return other;
    }

    /// As messages have it: "variable 2", or "variable 2 'velocity'" if it has a name.
    [[nodiscard]] std::string called(std::size_t number) const { return pattern::called(number, name()); }
    [[nodiscard]] std::string_view name() const { return name_ ? std::string_view(*name_) : std::string_view(); }
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
    std::shared_ptr<std::string const> name_;  ///< none: it has no name
    std::vector<Layout> layouts_;
    std::uint64_t bytes_ = 0;
    bool layered_ = false;
    std::shared_ptr<Subarray const> declared_;
};

}  // namespace tapioca::pattern
