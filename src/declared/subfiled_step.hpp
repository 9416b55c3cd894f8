// SubfiledStep: how a step's writes add chunks to a set of subfiles. A group's chunk has the data of its ranks side by
// side; so within the group's subfile, every write is contiguous, whatever the step looks like in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "declared/group_subfile.hpp"
#include "declared/step_state.hpp"

namespace tapioca::declared {

/// A rank's part of a chunk: what the group's subfile gets, and what the index says about it. Both have the same bytes.
struct ChunkPart {
    pattern::Variables stored;  ///< offsets in the rank's part of the chunk, places in memory
    pattern::Variables held;    ///< offsets in the file, places in the rank's part of the chunk
};
/// The bytes of each variable as they are packed in memory.
ChunkPart in_order_of_memory(pattern::Variables const& variables);
/// The bytes of each variable in the order of the file, for variables that are not packed in memory.
ChunkPart in_order_of_file(pattern::Variables const& variables);

class SubfiledStep {
public:
    /// Plans the group's step and gives it a form. Collective over the group; throws.
    /// `disjoint`: no byte of the file is written twice by the ranks of all groups.
    SubfiledStep(GroupSubfile& subfile, ChunkPart const& part, bool disjoint);
    SubfiledStep(SubfiledStep const&) = delete;
    SubfiledStep& operator=(SubfiledStep const&) = delete;

    /// The step of the group, on its subfile, with the stored variables.
    [[nodiscard]] StepState& step() { return *step_; }
    [[nodiscard]] StepState const& step() const { return *step_; }
    /// The next run writes the chunk with this shift to this subfile, which may be another one than before. Collective
    /// over the group; throws.
    void go_to(GroupSubfile& subfile, std::int64_t shift);
    /// The one that it writes to.
    [[nodiscard]] GroupSubfile& subfile() { return *subfile_; }
    /// Of a chunk.
    [[nodiscard]] std::uint64_t bytes() const { return group_bytes_; }
    /// The chunk is written. Local.
    core::Status note();

private:
    [[nodiscard]] std::uint32_t form_in(GroupSubfile& subfile) const;

    GroupSubfile* subfile_;
    std::uint64_t group_bytes_ = 0;
    subfile::SetWriter::Description description_;  ///< with entries on the group's first rank
    std::uint32_t form_ = 0;
    std::int64_t shift_ = 0;
    std::unique_ptr<StepState> step_;
};

/// Writes variables of all ranks as one chunk for each group. Collective; the same Status on every rank.
core::Status write_chunks(FileState& file, pattern::Variables const& variables, std::byte* data);

}  // namespace tapioca::declared
