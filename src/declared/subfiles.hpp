// Subfiles: how the ranks of an open file add to a set of subfiles. Each group of ranks writes a subfile of its own.
// If these lie on a tier of the nodes, small steps go to one more subfile, which all ranks share, in the file system.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "declared/group_subfile.hpp"
#include "file/groups.hpp"

namespace tapioca::declared {

class Subfiles {
public:
    /// For a file whose set takes chunks. Local; the same on all ranks.
    explicit Subfiles(FileState& file);
    Subfiles(Subfiles const&) = delete;
    Subfiles& operator=(Subfiles const&) = delete;
    ~Subfiles();

    /// The subfile to which a step goes that moves so many bytes on all ranks together.
    [[nodiscard]] GroupSubfile& of_step(std::uint64_t bytes);
    /// The next collective write of all ranks begins. Local.
    void advance();

    // These are collective over all ranks of the file, and return the same Status on all of them.

    /// Makes everything durable that was written so far.
    core::Status sync();
    /// Brings everything that was written so far from the tier to the file system, if it lies on one.
    core::Status drain();
    /// Sets the size of the file, as MPI_File_set_size does.
    core::Status resize(std::int64_t size);
    /// Closes the subfiles, adds their accounts to the file's, and completes the set.
    core::Status close();

    /// What to say if the file is never closed; empty if that does no harm, because nothing was written to a set that
    /// is complete. Local; the same on all ranks.
    [[nodiscard]] std::string never_closed() const;
    /// A line for people.
    [[nodiscard]] std::string describe() const;

private:
    core::Status complete();
    [[nodiscard]] bool drains() const;
    core::Status bring_to_directory(std::vector<subfile::SealedDrainer::Sealed> const& earlier);
    core::Status check_closed();
    [[nodiscard]] std::string how_to_complete() const;
    core::Status sync_set();
    void note_account();

    FileState& file_;
    file::Groups groups_;
    GroupSubfile own_;
    std::unique_ptr<GroupSubfile> common_;  ///< of all ranks; null unless the other subfiles lie on a tier
    bool synced_ = false;
    bool drained_ = false;         ///< by drain()
    bool written_ = false;         ///< chunks were added, or the size was set
    bool set_is_durable_ = false;  ///< on rank 0
};

}  // namespace tapioca::declared
