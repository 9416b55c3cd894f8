// Options: everything that can be set, in code. The same names work as hints (`tapioca_buffersize`)
// and as environment variables (`TAPIOCA_BUFFERSIZE`); environment beats hints, hints beat code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#pragma GCC visibility push(default)

namespace tapioca {

enum class Direct { automatic, never, always };

/// Unset members take the default, or what the planner finds best. Rank 0's values count.
struct Options {
    // how much is gathered, and where
    std::optional<std::uint64_t> buffersize;  ///< bytes of one buffer; rounded up to the file system's block
    std::optional<int> buffers;               ///< buffers per aggregator: 1 to 64, default 2
    std::optional<int> nbaggr;                ///< number of aggregators, for writing and for reading
    std::optional<std::string> aggrtier;      ///< tier of the buffers: `dram`
    std::optional<std::string> strategy;      ///< how aggregators are placed
    std::optional<Direct> direct;             ///< ranks access the file themselves: auto, never, always
    std::optional<std::string> transport;     ///< between nodes: `p2p` (messages, default) or `rma` (put and get)
    std::optional<int> ranks_per_node;        ///< pretend that every so many ranks are a node
    std::optional<std::uint64_t> memory;      ///< cap in bytes for buffers and bookkeeping of a process
    // what happens around it
    std::optional<bool> devnull;        ///< gather, but do not write
    std::optional<bool> check;          ///< check that ranks agree and do not overlap; slow
    std::optional<double> timeout;      ///< seconds a rank waits for others before it aborts the job; 0: for ever
    std::optional<std::string> report;  ///< file for the JSON account written at close
    std::optional<bool> commsplit;      ///< accepted for the original library's sake; has no effect
};

}  // namespace tapioca

#pragma GCC visibility pop
