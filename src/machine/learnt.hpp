// Learnt: which ways earlier jobs found to be the fastest (TAPIOCA_LEARN=FILE), as text. Specified in
// docs/formats/learnt.md; change both together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tapioca::machine {

class Learnt {
public:
    struct Lesson {
        int aggregators = 0;             ///< 0: direct; -1: left to the MPI library
        std::uint64_t buffer_bytes = 0;  ///< 0: as the planner sizes them
        double seconds_per_byte = 0;
        friend bool operator==(Lesson const&, Lesson const&) = default;
    };

    /// Parses a file's text, which may be empty. Fails if it is not such a file. Damaged lines are left out.
    static core::Result<Learnt> parse(std::string_view text);
    /// The line for a way, to be appended to a file. `key` has no line break.
    static std::string line(std::string const& key, Lesson const& way);
    /// The first line of a file.
    static std::string first_line();

    /// The latest finding for a key.
    [[nodiscard]] std::optional<Lesson> find(std::string const& key) const;
    [[nodiscard]] std::size_t size() const { return ways_.size(); }
    [[nodiscard]] std::size_t damaged() const { return damaged_; }

private:
    std::map<std::string, Lesson, std::less<>> ways_;
    std::size_t damaged_ = 0;
};

/// Reads a file, which need not exist. Local.
core::Result<std::string> read_learnt(std::string const& path);
/// Appends lines to a file with one call, so that jobs that run at the same time do not mix theirs. Local.
core::Status add_learnt(std::string const& path, std::string const& lines);

}  // namespace tapioca::machine
