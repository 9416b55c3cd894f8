// Workloads: what every rank of a job moves in a step. `tapioca bench` moves it, and `tapioca plan` only plans it.
// Nothing here communicates.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tapioca/pattern.hpp>

#include "core/result.hpp"

namespace CLI {
class App;
}

namespace workloads {

/// `count` blocks of `length` bytes, `stride` apart, from `offset` on.
struct StridedBlocks {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t stride = 0;
    std::int64_t count = 1;
    [[nodiscard]] std::int64_t bytes() const { return length * count; }
};

/// What one rank moves.
struct RankPart {
    std::vector<StridedBlocks> variables;
    std::vector<tapioca::Extent> extents;  ///< the same as an irregular list, if it is declared that way

    [[nodiscard]] tapioca::Pattern pattern() const;
    /// Calls visit(offset, length) for the contiguous pieces of variable `var`, in the order of its packed buffer.
    template <class Visit>
    void for_each_piece(std::size_t var, Visit visit) const
    {
        if (!extents.empty()) {
            for (auto const& extent : extents) visit(extent.offset, extent.length);
            return;
        }
        auto const& [offset, length, stride, count] = variables[var];
        for (std::int64_t i = 0; i < count; ++i) visit(offset + i * stride, length);
    }
};

/// A workload with all its arguments, for a given number of ranks.
struct Workload {
    std::string name;
    std::string layout;               ///< or another word that distinguishes two of the same name
    std::string label;                ///< such as "hacc aos, 25000 particles a rank"
    std::string title;                ///< the label in a picture: "HACC-IO aos, 25000 particles a rank"
    std::int64_t block_bytes = 0;     ///< size of the smallest piece, for the table
    int steps = 2;                    ///< number of steps that fill a file
    std::int64_t interleaved_by = 0;  ///< distance to the next step; 0: it begins where this one ends
    std::function<RankPart(int rank)> part;
};

/// Makes a workload for this number of ranks.
using Maker = std::function<Workload(int ranks)>;
/// The workloads that a command line asks for, or what is wrong with it. To be called after it was parsed.
using Chosen = std::function<tapioca::core::Result<std::vector<Maker>>()>;

/// A row of the table.
struct WorkloadKind {
    std::string_view name;
    std::string_view about;  ///< one line for `tapioca bench --help`
    /// Adds the workload's own options to the subcommand of `tapioca bench`. Null: not for the benchmark.
    Chosen (*options)(CLI::App& verb) = nullptr;
    bool whole_files = false;  ///< only a whole file, written in many steps, is of interest
    std::string_view text =
        {};  ///< syntax for `tapioca plan --workload`: "hacc:PARTICLES,aos|soa". Empty: not for plans
    /// Makes it from the words after the colon, of which there is at least one.
    tapioca::core::Result<Workload> (*from_words)(std::vector<std::string> const& words, int ranks) = nullptr;
};

/// All kinds of workloads, in the table's order.
std::span<WorkloadKind const* const> kinds();

/// Parses a text such as "hacc:25000,aos", for `ranks` ranks. Local.
tapioca::core::Result<Workload> from_text(std::string const& text, int ranks);
/// The syntax of from_text() for users: each kind's text, in lines of less than 100 characters.
std::string texts();
/// Names of the kinds that are measured step by step, or in whole files: "hacc, interleaved or array1d".
std::string benchmarked(bool whole_files, std::string_view before_last);

}  // namespace workloads
