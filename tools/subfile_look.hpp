// What the verbs of `tapioca subfile` find out about a set.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "subfile/set_directory.hpp"

namespace tools {

/// A set, and everything that its index and journals say.
struct OpenSet {
    std::string path;       ///< of the stub
    std::string directory;  ///< path of the subfiles' directory
    tapioca::subfile::Stub stub;
    tapioca::core::Descriptor opened;  ///< the directory
    std::unique_ptr<tapioca::subfile::SetContents> contents;

    [[nodiscard]] std::int64_t size() const;  ///< of the file
    [[nodiscard]] bool writer_counts() const  ///< the writer's note is newer than the index
    {
        return contents->writer().generation > contents->head().generation;
    }
};
/// Fails if there is no set at `path`, or if its records cannot be read.
tapioca::core::Result<OpenSet> open_set(std::string const& path);

/// What `list` shows of a set.
struct SetFacts {
    std::string path;
    std::string state;   ///< complete, live, interrupted or damaged
    std::string damage;  ///< if it is damaged; then nothing else is known
    std::int64_t size = 0;
    std::string layout;
    std::size_t subfiles = 0;
    std::size_t on_tiers = 0;  ///< of these, those that are not in the directory
    std::string tier;          ///< on which new subfiles lie; empty: in the directory
    std::size_t chunks = 0;
    std::uint64_t data_bytes = 0;             ///< of all chunks
    std::optional<std::uint64_t> dead_bytes;  ///< of those, bytes that no longer count
    std::uint64_t process = 0;                ///< that writes it, or did so when it was interrupted
    std::string host;
    std::uint32_t ranks = 0;
    std::uint32_t nodes = 0;
    std::uint64_t written = 0;  ///< seconds since 1970
};
SetFacts look_at_set(std::string const& path);

/// "process 12 on host a".
std::string to_text(tapioca::subfile::WriterNote const& job);

}  // namespace tools
