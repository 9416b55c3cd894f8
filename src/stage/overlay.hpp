// Overlay: what lies over the file at one moment, that is the live bytes of some logs, found by place.
#pragma once

#include <functional>
#include <memory>

#include "stage/log_content.hpp"

namespace tapioca::stage {

class Overlay {
public:
    explicit Overlay(std::shared_ptr<LogContent> content);

    using Visit = std::function<void(std::int64_t offset, std::int64_t length, std::byte const* data)>;
    /// The pieces of [begin, end) that are in the logs. Takes the time of a search and of the pieces.
    void look(std::int64_t begin, std::int64_t end, Visit const& visit) const;
    /// Those that requests in the logs have written, but are in the file; without data.
    void look_through(std::int64_t begin, std::int64_t end, Visit const& visit) const;
    /// Where the last of look()'s pieces ends.
    [[nodiscard]] std::int64_t end() const { return end_; }

private:
    [[nodiscard]] std::vector<pattern::Layout> const& layouts() const { return batch_.variables.front()->layouts(); }

    std::shared_ptr<LogContent> content_;  ///< which the batch's data belongs to
    Batch batch_;
    std::int64_t end_ = 0;
};

}  // namespace tapioca::stage
