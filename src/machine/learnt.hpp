// Learnt: which ways earlier jobs have found to be the fastest (TAPIOCA_LEARN=FILE), as text. Specified in
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

    /// A file's text; an empty one is fine. Fails if it is no such file. Lines that are damaged are left out.
    static core::Result<Learnt> parse(std::string_view text);
    /// The line that tells of a way, for the end of a file. `key` has no line break.
    static std::string line(std::string const& key, Lesson const& way);
    /// The first line of a file.
    static std::string first_line();

    /// What was learnt last.
    [[nodiscard]] std::optional<Lesson> find(std::string const& key) const;
    [[nodiscard]] std::size_t size() const { return ways_.size(); }
    [[nodiscard]] std::size_t damaged() const { return damaged_; }

private:
    std::map<std::string, Lesson, std::less<>> ways_;
    std::size_t damaged_ = 0;
};

/// Reads a file, which need not exist. Local.
core::Result<std::string> read_learnt(std::string const& path);
/// Adds lines to a file, all with one call, so that jobs at the same time do not get between them. Local.
core::Status add_learnt(std::string const& path, std::string const& lines);

}  // namespace tapioca::machine
