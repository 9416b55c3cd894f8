// Workloads: what every rank of a job moves in a step, for `tapioca bench`, which moves it, and for `tapioca plan`,
// which only plans it. Nothing here communicates.
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
    std::vector<tapioca::Extent> extents;  ///< the same, where it is declared as an irregular list instead

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
    std::string layout;               ///< or another word that tells two of the same name apart
    std::string label;                ///< such as "hacc aos, 25000 particles a rank"
    std::string title;                ///< the same for a picture: "HACC-IO aos, 25000 particles a rank"
    std::int64_t block_bytes = 0;     ///< size of the smallest piece, for the table
    int steps = 2;                    ///< that fill a file
    std::int64_t interleaved_by = 0;  ///< how far on the next step lies; 0: behind all of this one
    std::function<RankPart(int rank)> part;
};

/// Makes a workload for so many ranks.
using Maker = std::function<Workload(int ranks)>;
/// The workloads that a command line asks for, or what is wrong with it. To be called when it has been read.
using Chosen = std::function<tapioca::core::Result<std::vector<Maker>>()>;

/// A row of the table.
struct WorkloadKind {
    std::string_view name;
    std::string_view about;  ///< one line for `tapioca bench --help`
    /// Adds the workload's own options to the subcommand of `tapioca bench`. Null: not for the benchmark.
    Chosen (*options)(CLI::App& verb) = nullptr;
    bool whole_files = false;  ///< only a whole file, written in many steps, is of interest
    std::string_view text =
        {};  ///< how `tapioca plan --workload` is told: "hacc:PARTICLES,aos|soa". Empty: not for plans
    /// From the words behind the colon, of which there is at least one.
    tapioca::core::Result<Workload> (*from_words)(std::vector<std::string> const& words, int ranks) = nullptr;
};

/// All kinds of workloads, in the table's order.
std::span<WorkloadKind const* const> kinds();

/// "hacc:25000,aos" and the like, for `ranks` ranks. Local.
tapioca::core::Result<Workload> from_text(std::string const& text, int ranks);
/// What from_text() takes, for people: each kind's text, in lines of less than 100 characters.
std::string texts();
/// Names of the kinds that are benchmarked step by step, or in whole files: "hacc, interleaved or array1d".
std::string benchmarked(bool whole_files, std::string_view before_last);

}  // namespace workloads
