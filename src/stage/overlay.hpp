// Overlay: what lies over the file at one moment, that is the live bytes of some logs, found by place.
#pragma once

#include <functional>
#include <memory>

#include "stage/content.hpp"

namespace tapioca::stage {

class Overlay {
public:
    /// `below`: what lies under it, all of it older.
    explicit Overlay(std::shared_ptr<Content> content, std::shared_ptr<Overlay const> below = nullptr);

    using Visit = std::function<void(std::int64_t offset, std::int64_t length, std::byte const* data)>;
    /// The pieces of [begin, end) that are in the logs. Takes the time of a search and of the pieces.
    void look(std::int64_t begin, std::int64_t end, Visit const& visit) const;
    /// Where the last of them ends.
    [[nodiscard]] std::int64_t end() const { return end_; }
    [[nodiscard]] Content const& content() const { return *content_; }

private:
    [[nodiscard]] std::vector<pattern::Layout> const& layouts() const { return batch_.variables.front()->layouts(); }
    void look_above(std::int64_t begin, std::int64_t end, Visit const& visit) const;

    std::shared_ptr<Content> content_;  ///< which the batch's data belongs to
    Batch batch_;
    std::shared_ptr<Overlay const> below_;
    std::int64_t end_ = 0;
};

}  // namespace tapioca::stage
