// SetTarget: a set of subfiles as one file. Reads find every byte where the set has it. Writes go to where the set has
// these bytes already, and otherwise to the file `rest`; they add no chunks, so any number of processes may make them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "subfile/holding_pieces.hpp"
#include "subfile/set_directory.hpp"
#include "target/target.hpp"

namespace tapioca::subfile {

class Peers;
struct PeerPiece;
class SetFiles;

class SetTarget final : public target::Target {
public:
    /// `stub`: the open stub. The directory is opened when it is first needed. `on_tier`: where this node has subfiles
    /// that are not in the directory; empty: the set has none on tiers. `peers`: reach those of other nodes; null: they
    /// cannot be reached.
    SetTarget(std::unique_ptr<target::Target> stub, std::string directory, SetId const& identity,
              target::OpenMode access, std::string on_tier = {}, std::shared_ptr<Peers> peers = nullptr);
    ~SetTarget() override;

    using Target::read;
    using Target::write;
    core::Status write(std::int64_t offset, std::span<iovec> vectors) override;
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override;
    core::Status sync() override;
    core::Result<std::uint64_t> size() override;
    /// Keeps the beginning of the stub up to date, as long as chunks do not change it.
    core::Status close() override;
    void tell_changes(std::shared_ptr<target::Changes> changes) override { changes_ = std::move(changes); }
    [[nodiscard]] int descriptor() const override { return stub_ ? stub_->descriptor() : -1; }

    /// Makes the file at least this long.
    core::Status grow(std::int64_t size);
    /// Sets the size of the file `rest`. If no chunk has a byte beyond it, this is the size of the file; otherwise only
    /// a job that adds chunks can cut these bytes off (SetWriter::note_cut).
    core::Status resize_rest(std::int64_t size);
    /// One past the last byte that a chunk has.
    core::Result<std::int64_t> end_of_chunks();

    /// Gives the stub the file's first bytes, as they are now, unless they are on another node.
    core::Status keep_beginning();

    /// Closes what is still open of subfiles that were drained (SetFiles::leave_drained).
    void leave_drained();
    /// Finds out what the set has now. Several system calls, so steps look once.
    core::Status look();
    /// What the set has of [begin, end), as of the last look.
    core::Result<std::vector<Holding>> find(std::int64_t begin, std::int64_t end);
    /// Where the bytes of [begin, end) lie, as of now, whether or not this node has them.
    core::Result<std::vector<FilePart>> parts(std::int64_t begin, std::int64_t end);
    /// The host on which a subfile was written; empty if it is not known.
    [[nodiscard]] std::string host_of(std::uint32_t number);
    /// The descriptor of a subfile.
    core::Result<int> subfile(std::uint32_t number);
    /// Fills `to` with what the file `rest` has from `offset` on, and with zeros where it has nothing.
    core::Status read_rest(std::int64_t offset, std::span<std::byte> to);

    /// Calls visit(offset, length, descriptor, position) for the contiguous stretches of [begin, end), in ascending
    /// order; the descriptor is -1 where the file has a hole. Fails if some lie on another node. Local.
    using VisitStretch = std::function<core::Status(std::int64_t offset, std::int64_t length, int fd, std::int64_t at)>;
    core::Status each_stretch(std::int64_t begin, std::int64_t end, VisitStretch const& visit);

private:
    struct FoundStretch {
        FilePart part;
        int fd;  ///< -1: in `rest`; at_peer: on another node
    };
    enum class Towards { memory, file };
    core::Result<std::vector<FoundStretch>> stretches(std::int64_t begin, std::int64_t end, bool with_peers);
    core::Result<std::vector<FoundStretch>> latest_stretches(std::int64_t begin, std::int64_t end, bool with_peers);
    [[nodiscard]] bool peers_have(std::uint32_t subfile) const;
    core::Status move_latest(Towards where, std::int64_t begin, std::span<std::byte> memory);
    core::Status move_here(Towards where, FoundStretch const& stretch, std::span<std::byte> memory);
    core::Status move_at_peer(Towards where, std::uint32_t subfile, std::vector<PeerPiece> const& pieces);
    core::Status paint_known(std::vector<Holding> const& holdings, std::int64_t at, std::span<std::byte> to);
    core::Status fill(std::int64_t at, std::span<std::byte> to);

    std::unique_ptr<target::Target> stub_;
    bool has_tier_;
    std::unique_ptr<SetFiles> files_;
    std::shared_ptr<Peers> peers_;
    std::shared_ptr<target::Changes> changes_;
    std::atomic<bool> begins_anew_ = false;  ///< some of the file's first bytes were written through this
};

}  // namespace tapioca::subfile
