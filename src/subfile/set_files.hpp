// SetFiles: the open files of a set, for SetTarget. Several threads may use it. All calls are local.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "subfile/set_directory.hpp"
#include "target/target.hpp"

namespace tapioca::subfile {

class SetFiles {
public:
    /// The directory is opened when it is first needed.
    /// `on_tier`: where this node has subfiles that are not in the directory; empty: the set has none on tiers.
    SetFiles(std::string directory, SetId const& identity, target::OpenMode access, std::string on_tier);

    /// Finds out what the set has now.
    core::Status look();
    /// What the set has of [begin, end), as of now.
    core::Result<std::vector<Holding>> find(std::int64_t begin, std::int64_t end);
    /// The same as of the last look, of this thread or another; fails if that has failed.
    core::Result<std::vector<Holding>> find_known(std::int64_t begin, std::int64_t end);
    core::Result<std::int64_t> end_of_chunks();
    std::string host_of(std::uint32_t number);
    core::Result<std::int64_t> size();
    /// The descriptor of a subfile. Fails with not_found if it is neither in the directory nor on this node's tier: it
    /// may be gone, it may lie on another node, or the index is a new one.
    core::Result<int> subfile(std::uint32_t number);
    /// Writes to a subfile, wherever it is. One that lies on a tier may be drained meanwhile: then this waits for the
    /// drain, and writes to the subfile that it has made.
    core::Status write(std::uint32_t number, std::uint64_t at, std::span<std::byte const> from);
    /// The descriptor of the file `rest`; -1 if it does not exist and is not to be made.
    core::Result<int> rest(bool make);
    core::Status sync();
    /// Closes what is still open of subfiles that were drained, so that the tier gets their room back. No other thread
    /// may use this object meanwhile.
    void leave_drained();
    core::Status close();

private:
    [[nodiscard]] core::Result<core::Descriptor> open(std::string const& name, int flags) const;
    [[nodiscard]] core::Result<core::Descriptor> find_subfile(std::uint32_t number) const;
    [[nodiscard]] std::string why_not_here(std::uint32_t number) const;
    core::Status open_directory_once();
    core::Status refresh();
    core::Status refresh_contents();
    [[nodiscard]] bool was_drained(std::uint32_t number, int fd) const;
    void leave(std::uint32_t number);

    std::string path_;
    SetId identity_;
    target::OpenMode access_;
    std::string on_tier_;
    std::mutex mutex_;
    core::Descriptor directory_;
    std::unique_ptr<SetContents> contents_;
    core::Status last_look_ = core::fail(Errc::invalid_state, "the set has not been looked at");
    core::Descriptor rest_;
    std::map<std::uint32_t, core::Descriptor> subfiles_;
    std::vector<core::Descriptor> drained_;  ///< of subfiles that are no longer on the tier; other threads may use them
    std::mutex writing_;                     ///< held while a lock is: it would be that of all threads
};

}  // namespace tapioca::subfile
