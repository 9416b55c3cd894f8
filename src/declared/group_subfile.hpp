// GroupSubfile: the subfile that a group of ranks writes. The group has it open like any other file, with aggregators,
// learning and everything else inside the group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "file/open_file.hpp"
#include "subfile/sealed_drainer.hpp"
#include "subfile/set_writer.hpp"

namespace tapioca::declared {

class FileState;

class GroupSubfile {
public:
    /// For a file whose set takes chunks. `ranks`: of the group, of which this rank is one. `number`: of the subfile.
    /// `on_tier`: whether it lies on the node's tier. Local; the same on all ranks of the group.
    /// `groups_on_node`: how many groups write to the tier of this rank's node.
    GroupSubfile(FileState& file, std::vector<int> ranks, std::uint32_t number, bool on_tier,
                 std::uint64_t groups_on_node = 1);
    GroupSubfile(GroupSubfile const&) = delete;
    GroupSubfile& operator=(GroupSubfile const&) = delete;
    ~GroupSubfile();

    [[nodiscard]] subfile::SetWriter& writer() { return writer_; }
    /// Where it lies.
    [[nodiscard]] std::string path() const { return writer_.path(); }
    [[nodiscard]] std::vector<int> const& ranks() const { return ranks_; }
    /// The subfile, opened at the first call, which is collective over the group. Throws.
    [[nodiscard]] std::shared_ptr<FileState> const& file();
    [[nodiscard]] bool is_open() const { return subfile_ != nullptr; }
    /// The communicator of the group. Collective over the group at the first call.
    [[nodiscard]] MPI_Comm group() const;
    /// Runs `body`, which may throw an error of the subfile, and returns the error in the terms of the whole file: only
    /// on the rank that failed, if it is known.
    template <class Body>
    core::Status within_group(Body const& body) const
    {
        try {
            return body();
        } catch (file::Raised const& error) {
            return translated(error);
        }
    }

    /// The group is about to write so many bytes. If its subfiles are drained while the program computes, it may go on
    /// in another one: on the tier or, when that is full, in the directory of the set. Collective over the group;
    /// throws.
    void make_room(std::uint64_t bytes);

    /// Makes everything durable that was written so far, but for what is drained while the program computes: this is
    /// durable when it is drained. Collective over the group.
    core::Status sync();
    /// Closes subfile and journal, and adds the subfile's account to the file's. Collective over the group.
    core::Status close(bool durable);
    /// Nothing more will be written to the present subfile: the next write goes on in another one. Collective over the
    /// group.
    core::Status end_subfile();

    // These are local, and bring what is on the tier to the directory, after close() or end_subfile(). The group's
    // first rank does so; what could not be brought stays on the tier.

    /// Also `earlier`, subfiles of earlier openings on this node.
    void begin_drain(std::vector<subfile::SealedDrainer::Sealed> const& earlier);
    /// Waits for a while; true when everything is in the directory, or something has failed.
    [[nodiscard]] bool wait_for_drain();
    [[nodiscard]] core::Status drain_status() const { return drainer_ ? drainer_->status() : core::Status(); }

    /// How much went to which level, and how long the group has waited for room, on its first rank.
    struct LevelCounts {
        std::uint64_t tier_bytes = 0;
        std::uint64_t directory_bytes = 0;  ///< written there at once, because the tier was full
        double waiting = 0;                 ///< seconds
        subfile::SealedDrainer::Counts drained = {};
    };
    [[nodiscard]] LevelCounts levels() const;

private:
    enum class NextPlace : int { same, on_tier, in_directory, not_yet };
    [[nodiscard]] NextPlace choose(std::uint64_t bytes);
    void move_on(std::uint64_t bytes);
    [[nodiscard]] NextPlace next_place(std::uint64_t bytes);
    void go_on_in(std::uint32_t number, bool on_tier);
    void seal();
    [[nodiscard]] std::uint64_t sealed_so_far() const;
    void drain_sealed();
    void close_subfile(bool durable);
    [[nodiscard]] core::Status translated(file::Raised const& error) const;

    FileState& whole_;
    std::vector<int> ranks_;
    subfile::SetWriter writer_;
    std::shared_ptr<FileState> subfile_;
    std::shared_ptr<engine::Session> session_;  ///< of MPI_COMM_SELF, which other threads use at the same time
    std::uint32_t opened_ = 0;                  ///< the number of the subfile that was opened last
    TargetDrain when_drained_ = TargetDrain::never;
    bool on_tier_;                                        ///< the present subfile
    std::unique_ptr<subfile::SealedDrainer> drainer_;     ///< on the first rank of a group that writes to a tier
    std::vector<subfile::SealedDrainer::Sealed> sealed_;  ///< to be drained later
    std::uint64_t sealed_bytes_;  ///< a subfile of so many is sealed if it can be drained while the program computes
    LevelCounts levels_;
};

}  // namespace tapioca::declared
