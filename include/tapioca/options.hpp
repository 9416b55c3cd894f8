// Options: everything that can be set, in code. The same names work as hints (`tapioca_buffersize`)
// and as environment variables (`TAPIOCA_BUFFERSIZE`); environment beats hints, hints beat code.
#pragma once

#include <tapioca/cxx20.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace tapioca {

enum class Direct { automatic, never, always };

/// What the contents of a tier outlive.
enum class Persistency { none, job, permanent };

/// Whose requests share a log. The numbers are those of the log's format.
enum class StageMapping : std::uint32_t { process = 0, node = 1 };

/// When a log is made to survive the machine: with every write, with every collective one, or when File::sync() asks.
enum class StageSync { write, collective, sync };

/// How many aggregators there shall be: a number, or a rule that finds one.
class AggregatorCount {
public:
    /// From 1 to 65536. File::open() refuses other numbers.
    template <std::integral Integer>
    constexpr AggregatorCount(Integer number) noexcept
        : number_(std::in_range<int>(number) ? static_cast<int>(number) : -1)
    {
    }
    static AggregatorCount const automatic;  ///< `auto`: what the target, the nodes and the memory allow
    static AggregatorCount const poster;     ///< `poster`: 2^ceil(log2(data / memory of an aggregator))
    static AggregatorCount const paper;      ///< `paper`: 2 for each server and 512 nodes, or 16 for each Pset

    /// The number, where it is not left to a rule.
    [[nodiscard]] constexpr std::optional<int> number() const noexcept
    {
        return rule_ == Rule::none ? std::optional<int>(number_) : std::nullopt;
    }
    friend constexpr bool operator==(AggregatorCount const&, AggregatorCount const&) noexcept = default;

private:
    enum class Rule { none, automatic, poster, paper };
    explicit constexpr AggregatorCount(Rule rule) noexcept : rule_(rule) {}

    Rule rule_ = Rule::none;
    int number_ = 0;
};
inline constexpr AggregatorCount AggregatorCount::automatic(Rule::automatic);
inline constexpr AggregatorCount AggregatorCount::poster(Rule::poster);
inline constexpr AggregatorCount AggregatorCount::paper(Rule::paper);

/// Unset members take the default, or what the planner finds best. Rank 0's values count. Strings are names of what can
/// be added to, such as strategies and tiers; File::open() refuses one that does not exist, and says which there are.
struct Options {
    // how much is gathered, and where
    std::optional<std::uint64_t> buffersize;     ///< bytes of one buffer; rounded up to the file system's block
    std::optional<int> buffers;                  ///< buffers per aggregator: 1 to 64, default 2; on several nodes 8
    std::optional<AggregatorCount> nbaggr;       ///< number of aggregators, or a rule: AggregatorCount::poster
    std::optional<AggregatorCount> nbaggr_read;  ///< the same for reading; default: as nbaggr
    std::optional<int> aggr_per_ost;             ///< aggregators for each server of a striped file, in place of auto's
    std::optional<std::string> aggrtier;         ///< tier of the buffers: `dram`, or one of the platform's
    std::optional<std::string> strategy;         ///< how aggregators are placed
    std::optional<std::string> model;            ///< cost model: `default`, or one of the papers'
    std::optional<std::string> platform;         ///< description of the machine: a file, or the name of a shipped one
    std::optional<Persistency> persistency;      ///< what the buffers must outlive; default: nothing
    std::optional<Direct> direct;                ///< ranks access the file themselves: auto, never, always
    std::optional<std::string> transport;        ///< between nodes: `p2p` (messages, default) or `rma` (put and get)
    std::optional<int> ranks_per_node;           ///< pretend that every so many ranks are a node
    std::optional<std::uint64_t> memory;         ///< cap in bytes for buffers and bookkeeping of a process
    // how a new file is laid out; a file that exists keeps its layout
    std::optional<std::uint64_t> striping_unit;  ///< bytes of a stripe
    std::optional<int> striping_factor;          ///< servers that the stripes go round
    // writing behind: writes land in a log on a fast tier and reach the file later (docs/stage.md)
    std::optional<std::string> stage;           ///< tier of the log: `dram`, `hbm`, `ssd:/dir`, ...; default: no log
    std::optional<StageMapping> stage_mapping;  ///< who shares a log; default: by the tier
    std::optional<StageSync> stage_sync;        ///< when the log is made durable; default: StageSync::sync
    std::optional<std::string> stage_drain;     ///< `off` (default), `on`, or bytes a second: drain in the background
    std::optional<std::uint64_t> stage_size;    ///< bytes of log a process may have; default: what the tier has
    /// Drop-in library: independent writes below so many bytes go to the file at once; default 64 KiB.
    std::optional<std::uint64_t> stage_through;
    std::optional<std::uint64_t> leave;
    // what happens around it
    std::optional<std::string> learn;   ///< other ways are tried: `on`, `off` (default), `always`, a file
    std::optional<bool> devnull;        ///< gather, but do not write
    std::optional<bool> check;          ///< check that ranks agree and do not overlap; slow
    std::optional<double> timeout;      ///< seconds a rank waits for others before the job is aborted; 0: for ever
    std::optional<std::string> report;  ///< file for the JSON account written at close
    std::optional<bool> off;            ///< drop-in library: leave everything to the MPI library
    std::optional<std::string> files;   ///< drop-in library: serve only paths that match, such as `*.h5:/scratch/*`
    std::optional<bool> commsplit;      ///< accepted for the original library's sake; has no effect
};

}  // namespace tapioca

#pragma GCC visibility pop
