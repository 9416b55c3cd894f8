// Overlay: the live bytes of some logs at one moment, which lie over the file, indexed by file offset.
#pragma once

#include <functional>
#include <memory>

#include "stage/log_content.hpp"

namespace tapioca::stage {

class Overlay {
public:
    explicit Overlay(std::shared_ptr<LogContent> content);

    using Visit = std::function<void(std::int64_t offset, std::int64_t length, std::byte const* data)>;
    /// Visits the pieces of [begin, end) that are in the logs. Takes the time of one search, plus the time for the
    /// pieces.
    void look(std::int64_t begin, std::int64_t end, Visit const& visit) const;
    /// Visits the pieces that requests in the logs have written and that are already in the file; without data.
    void look_through(std::int64_t begin, std::int64_t end, Visit const& visit) const;
    /// The end of the last piece that look() can visit.
    [[nodiscard]] std::int64_t end() const { return end_; }

private:
    [[nodiscard]] std::vector<pattern::Layout> const& layouts() const { return batch_.variables.front()->layouts(); }

    std::shared_ptr<LogContent> content_;  ///< owns the batch's data
    Batch batch_;
    std::int64_t end_ = 0;
};

}  // namespace tapioca::stage
