// Options: all settings, for use in code. The same names work as hints (`tapioca_buffersize`) and as environment
// variables (`TAPIOCA_BUFFERSIZE`). The environment beats a hint, and a hint beats code. docs/settings.md has them all.
#pragma once

#include <tapioca/cxx20.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace tapioca {

enum class Direct { automatic, never, always };

/// How long the contents of a tier last.
enum class Persistency { none, job, permanent };

/// Which processes share a log: each has its own, or those of a node share one. The log's format uses the same numbers.
enum class StageMapping : std::uint32_t { process = 0, node = 1 };

/// When a log is made to survive a crash of the machine: after every write, after every collective write, or only when
/// File::sync() is called.
enum class StageSync { write, collective, sync };

/// When data that was kept on a tier is brought to the file system: only by File::drain() or by a command (never), when
/// the file is closed, or also while the program computes.
enum class TargetDrain { never, close, background };

/// The number of aggregators: a number, or a rule that computes it.
class AggregatorCount {
public:
    /// A number from 1 to 65536. File::open() refuses others.
    template <std::integral Integer>
    constexpr AggregatorCount(Integer number) noexcept
        : number_(std::in_range<int>(number) ? static_cast<int>(number)
                  : number > 0               ? std::numeric_limits<int>::max()
                                             : -1)
    {
    }
    static AggregatorCount const automatic;  ///< `auto`: depends on the target, the nodes and the memory
    static AggregatorCount const poster;     ///< `poster`: 2^ceil(log2(data / memory of an aggregator))
    static AggregatorCount const paper;      ///< `paper`: 2 per server and 512 nodes, or 16 per Pset

    /// The number; nothing if a rule computes it.
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

/// For a member that is not set, the default is used, or the planner chooses. The values of rank 0 count. Members with
/// a fixed set of values are enumerations. Others are names, such as those of strategies and tiers; File::open()
/// refuses a name that does not exist, and lists those that do.
struct Options {
    // how much is gathered, and where
    std::optional<std::uint64_t> buffersize;  ///< bytes per buffer, rounded up to blocks of the file system
    std::optional<int> buffers;               ///< buffers per aggregator, 1 to 64; default: 2, on several nodes up to 8
    std::optional<AggregatorCount> nbaggr;    ///< number of aggregators; default: AggregatorCount::automatic
    std::optional<AggregatorCount> nbaggr_read;  ///< the same for reading; default: the value of nbaggr
    std::optional<int> aggr_per_ost;             ///< aggregators per server of a striped file; default: 2
    std::optional<std::string> aggrtier;         ///< tier of the buffers: `dram`, or a tier of the platform
    std::optional<std::string> strategy;         ///< how aggregators are placed
    std::optional<std::string> model;            ///< cost model: `default`, or a model of the papers
    std::optional<std::string> platform;         ///< description of the machine: a file, or the name of a shipped one
    std::optional<Persistency> persistency;      ///< that `target` must have, or else the tier of the buffers
    std::optional<Direct> direct;                ///< whether ranks may access the file themselves
    std::optional<std::string> transport;        ///< between nodes: `p2p` (messages; default) or `rma` (put and get)
    std::optional<int> ranks_per_node;           ///< treat every group of this many ranks as a node
    std::optional<std::uint64_t> memory;         ///< limit, in bytes, for a process's buffers and bookkeeping
    // how a new file is laid out; a file that exists keeps its stripes, and whether it consists of subfiles
    std::optional<std::uint64_t> striping_unit;  ///< bytes per stripe
    std::optional<int> striping_factor;          ///< number of servers that the stripes are spread over
    /// Which ranks of a new file share a subfile: `off` (default: one plain file), `node`, `nodes:4`, `switch`, `pset`,
    /// `gateway` or `files:16` (docs/subfiles.md).
    std::optional<std::string> subfile;
    // a tier as the destination: the data of a new file stays on the nodes (docs/target.md)
    std::optional<std::string> target;        ///< tier that keeps the data: `ssd:/dir`, ...; default: the file system
    std::optional<TargetDrain> target_drain;  ///< when it is brought to the file system; default: TargetDrain::never
    std::optional<std::uint64_t>
        target_size;  ///< bytes of a group that may wait on the tier to be drained; default: what is free
    /// Steps of fewer bytes, of all ranks together, go to the file system all the same; default: 64 KiB.
    std::optional<std::uint64_t> target_through;
    // writing behind: writes go to a log on a fast tier and reach the file later (docs/stage.md)
    std::optional<std::string> stage;           ///< tier of the log: `dram`, `hbm`, `ssd:/dir`, ...; default: no log
    std::optional<StageMapping> stage_mapping;  ///< which processes share a log; default: depends on the tier
    std::optional<StageSync> stage_sync;        ///< when the log is made durable; default: StageSync::sync
    std::optional<std::string> stage_drain;     ///< drain in the background: `off` (default), `on`, or bytes per second
    std::optional<std::uint64_t> stage_size;    ///< bytes of log per process; default: what the tier has
    /// Drop-in library: independent writes of fewer bytes go to the file at once; default: 64 KiB.
    std::optional<std::uint64_t> stage_through;
    /// Drop-in library: first accesses of fewer bytes per rank are left to the MPI library; default: 1 MiB; 0: none.
    std::optional<std::uint64_t> leave;
    // everything else
    std::optional<std::string> learn;   ///< whether other ways are tried: `on`, `off` (default), `always`, or a file
    std::optional<bool> devnull;        ///< gather, but do not write
    std::optional<bool> check;          ///< check that ranks pass the same arguments and do not overlap; slow
    std::optional<double> timeout;      ///< seconds that a rank waits for others before it aborts the job; 0: for ever
    std::optional<std::string> report;  ///< file for the JSON report that is written at close
    std::optional<bool> off;            ///< drop-in library: leave everything to the MPI library
    std::optional<std::string> files;   ///< drop-in library: serve only matching paths, such as `*.h5:/scratch/*`
    std::optional<bool> commsplit;      ///< accepted for compatibility with the original library; has no effect
};

}  // namespace tapioca

#pragma GCC visibility pop
