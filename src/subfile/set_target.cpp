#include "subfile/set_target.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <fmt/core.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "subfile/holding_pieces.hpp"
#include "subfile/peers.hpp"
#include "subfile/set_files.hpp"

namespace tapioca::subfile {

namespace {

/// Fills `to` with what a plain file has from `begin` on, and with zeros after its end.
core::Status read_or_zero(int fd, std::int64_t begin, std::span<std::byte> to)
{
    while (!to.empty() && fd >= 0) {
        auto const done = core::uninterrupted([&] { return ::pread(fd, to.data(), to.size(), begin); });
        if (done < 0) return core::fail_errno(errno, fmt::format("reading {} bytes at offset {}", to.size(), begin));
        if (done == 0) break;
        begin += done;
        to = to.subspan(static_cast<std::size_t>(done));
    }
    std::fill(to.begin(), to.end(), std::byte{0});
    return {};
}

/// Whether a new index may say that the bytes lie in another subfile than the one that was not found.
bool may_be_elsewhere(core::Failure const& failure)
{
    return failure.code == Errc::not_found || failure.code == Errc::unsupported;
}

/// What is wrong if another node was to have a subfile. Its host may have this node's name, so that only the answer
/// from there says whether it is gone.
core::Failure neither_here_nor_there(std::uint32_t subfile, core::Failure const& here, core::Failure const& there)
{
    if (!may_be_elsewhere(here)) return here;
    bool const gone = there.code == Errc::not_found;
    auto failure = there;
    failure.text = fmt::format("{} is not on this node; {}; {}", subfile_name(subfile), there.text,
                               gone ? "`tapioca target list FILE` shows what is left"
                                    : "a collective read with a rank there reaches it, and `tapioca target drain` "
                                      "brings it to the file system");
    return failure;
}

/// Reading more epochs than this one over the other takes longer than finding out which one counts for each byte.
constexpr int few_layers = 3;

/// In place of the descriptor of a subfile that another node has.
constexpr int at_peer = -2;

/// How many epochs the holdings are of. They come in the order of their epochs.
int layers(std::vector<Holding> const& holdings)
{
    int count = 0;
    std::uint64_t last = 0;
    for (auto const& holding : holdings) {
        if (holding.epoch != last) ++count;
        last = holding.epoch;
    }
    return count;
}

}  // namespace

SetTarget::SetTarget(std::unique_ptr<target::Target> stub, std::string directory, SetId const& identity,
                     target::OpenMode access, std::string on_tier, std::shared_ptr<Peers> peers)
    : stub_(std::move(stub)),
      has_tier_(!on_tier.empty()),
      files_(std::make_unique<SetFiles>(std::move(directory), identity, access, std::move(on_tier))),
      peers_(std::move(peers))
{
}

SetTarget::~SetTarget() = default;

core::Result<std::uint64_t> SetTarget::read(std::int64_t offset, std::span<iovec> vectors)
{
    std::int64_t wanted = 0;
    for (auto const& vector : vectors) wanted += static_cast<std::int64_t>(vector.iov_len);
    auto const size = files_->size();
    if (!size) return tl::unexpected(size.error());
    auto const end = std::min(offset + wanted, *size);
    std::vector<std::byte> assembled;
    std::size_t vector = 0;
    std::size_t filled = 0;  // of that vector
    for (auto at = offset; at < end;) {
        while (vectors[vector].iov_len == filled) {
            ++vector;
            filled = 0;
        }
        // Straight into the vector if it takes enough; otherwise through a buffer into several.
        auto const room = static_cast<std::int64_t>(vectors[vector].iov_len - filled);
        auto const length = std::min(end - at, most_at_once);
        bool const straight = room >= length || room >= most_at_once / 16;
        auto const part = straight ? std::min(length, room) : length;
        if (!straight) assembled.resize(static_cast<std::size_t>(part));
        std::span<std::byte> const to(
            straight ? static_cast<std::byte*>(vectors[vector].iov_base) + filled : assembled.data(),
            static_cast<std::size_t>(part));
        if (auto status = fill(at, to); !status) return tl::unexpected(status.error());
        if (straight) filled += static_cast<std::size_t>(part);
        for (std::size_t done = 0; !straight && done < to.size();) {
            while (vectors[vector].iov_len == filled) {
                ++vector;
                filled = 0;
            }
            auto const fits = std::min(to.size() - done, vectors[vector].iov_len - filled);
            std::memcpy(static_cast<std::byte*>(vectors[vector].iov_base) + filled, to.data() + done, fits);
            filled += fits;
            done += fits;
        }
        at += part;
    }
    return end > offset ? static_cast<std::uint64_t>(end - offset) : 0;
}

/// Reads what the set has there, as far as it is known, and zeros elsewhere.
core::Status SetTarget::fill(std::int64_t at, std::span<std::byte> to)
{
    auto const holdings = files_->find_known(at, at + static_cast<std::int64_t>(to.size()));
    if (!holdings) return tl::unexpected(holdings.error());
    bool const at_peers = std::any_of(holdings->begin(), holdings->end(),
                                      [&](auto const& holding) { return peers_have(holding.subfile); });
    if (at_peers || layers(*holdings) > few_layers) return move_latest(Towards::memory, at, to);
    auto const status = paint_known(*holdings, at, to);
    return status || !may_be_elsewhere(status.error()) ? status : move_latest(Towards::memory, at, to);
}

core::Status SetTarget::paint_known(std::vector<Holding> const& holdings, std::int64_t at, std::span<std::byte> to)
{
    if (!cover(holdings, at, at + static_cast<std::int64_t>(to.size())))
        if (auto status = read_rest(at, to); !status) return status;
    for (auto const& holding : holdings) {
        auto const fd = files_->subfile(holding.subfile);
        if (!fd) return tl::unexpected(fd.error());
        if (auto status = paint(holding, *fd, at, to); !status) return status;
    }
    return {};
}

/// Moves bytes of the file from `begin` on, piece by piece, only from or to where the bytes are that count, by the
/// index as it is now. Other nodes are asked once for all that lies in one of their subfiles.
core::Status SetTarget::move_latest(Towards where, std::int64_t begin, std::span<std::byte> memory)
{
    auto const found = latest_stretches(begin, begin + static_cast<std::int64_t>(memory.size()), true);
    if (!found) return tl::unexpected(found.error());
    std::map<std::uint32_t, std::vector<PeerPiece>> at_peers;
    core::Status status;
    for (auto const& stretch : *found) {
        auto const& part = stretch.part;
        auto const its =
            memory.subspan(static_cast<std::size_t>(part.offset - begin), static_cast<std::size_t>(part.length));
        if (stretch.fd == at_peer)
            at_peers[part.subfile].push_back({part.at, its});
        else if (status = move_here(where, stretch, its); !status)
            return status;
    }
    for (auto const& [subfile, pieces] : at_peers)
        if (status = move_at_peer(where, subfile, pieces); !status) return status;
    return status;
}

core::Status SetTarget::move_here(Towards where, FoundStretch const& stretch, std::span<std::byte> memory)
{
    auto const& [part, fd] = stretch;
    auto const at = static_cast<std::uint64_t>(part.at);
    if (where == Towards::memory)
        return fd < 0 ? read_rest(part.offset, memory) : core::read_all(fd, at, memory, "a subfile");
    if (fd >= 0) return files_->write(part.subfile, at, memory);
    auto const rest = files_->rest(true);
    if (!rest) return tl::unexpected(rest.error());
    return core::write_all(*rest, static_cast<std::uint64_t>(part.offset), memory, "the file");
}

bool SetTarget::peers_have(std::uint32_t subfile) const
{
    return peers_ && peers_->have(subfile);
}

/// If the node cannot be asked, this one may have the subfile, too: when both look at the same directory, or when the
/// subfile was drained meanwhile.
core::Status SetTarget::move_at_peer(Towards where, std::uint32_t subfile, std::vector<PeerPiece> const& pieces)
{
    auto status = where == Towards::memory ? peers_->read(subfile, pieces) : peers_->write(subfile, pieces);
    if (status || !may_be_elsewhere(status.error())) return status;
    auto const fd = files_->subfile(subfile);
    if (!fd) return tl::unexpected(neither_here_nor_there(subfile, fd.error(), status.error()));
    peers_->forget(subfile);
    for (auto const& piece : pieces) {
        FoundStretch const stretch{{0, static_cast<std::int64_t>(piece.memory.size()), subfile, piece.at}, *fd};
        if (status = move_here(where, stretch, piece.memory); !status) break;
    }
    return status;
}

core::Status SetTarget::read_rest(std::int64_t offset, std::span<std::byte> to)
{
    auto const rest = files_->rest(false);
    return rest ? read_or_zero(*rest, offset, to) : core::Status(tl::unexpected(rest.error()));
}

core::Status SetTarget::write(std::int64_t offset, std::span<iovec> vectors)
{
    if (changes_) changes_->note();
    if (offset < static_cast<std::int64_t>(beginning_bytes)) begins_anew_ = true;
    for (auto const& vector : vectors) {
        std::span from(static_cast<std::byte*>(vector.iov_base), vector.iov_len);
        while (!from.empty()) {
            auto const now = std::min(from.size(), static_cast<std::size_t>(most_at_once));
            if (auto status = move_latest(Towards::file, offset, from.first(now)); !status) return status;
            offset += static_cast<std::int64_t>(now);
            from = from.subspan(now);
        }
    }
    return {};
}

core::Status SetTarget::each_stretch(std::int64_t begin, std::int64_t end, VisitStretch const& visit)
{
    auto const found = latest_stretches(begin, end, false);
    if (!found) return tl::unexpected(found.error());
    for (auto const& [part, fd] : *found)
        if (auto status = visit(part.offset, part.length, fd, part.at); !status) return status;
    return {};
}

core::Result<std::vector<FilePart>> SetTarget::parts(std::int64_t begin, std::int64_t end)
{
    return files_->find(begin, end).map([&](std::vector<Holding> const& holdings) {
        return latest_parts(holdings, begin, end, true);
    });
}

/// What was not found may be elsewhere by a new index.
core::Result<std::vector<SetTarget::FoundStretch>> SetTarget::latest_stretches(std::int64_t begin, std::int64_t end,
                                                                               bool with_peers)
{
    auto found = stretches(begin, end, with_peers);
    if (!found && may_be_elsewhere(found.error())) found = stretches(begin, end, with_peers);
    return found;
}

core::Result<std::vector<SetTarget::FoundStretch>> SetTarget::stretches(std::int64_t begin, std::int64_t end,
                                                                        bool with_peers)
{
    auto const all = parts(begin, end);
    if (!all) return tl::unexpected(all.error());
    std::vector<FoundStretch> found;
    for (auto const& part : *all) {
        auto const fd = part.subfile == in_rest                  ? core::Result<int>(-1)
                        : with_peers && peers_have(part.subfile) ? core::Result<int>(at_peer)
                                                                 : files_->subfile(part.subfile);
        if (!fd) return tl::unexpected(fd.error());
        found.push_back({part, *fd});
    }
    return found;
}

core::Status SetTarget::sync()
{
    auto status = files_->sync();
    if (peers_) core::keep_first(status, peers_->sync());
    return status;
}

core::Result<std::uint64_t> SetTarget::size()
{
    return files_->size().map([](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); });
}

void SetTarget::leave_drained()
{
    files_->leave_drained();
}

core::Status SetTarget::look()
{
    return files_->look();
}

core::Result<std::vector<Holding>> SetTarget::find(std::int64_t begin, std::int64_t end)
{
    return files_->find_known(begin, end);
}

std::string SetTarget::host_of(std::uint32_t number)
{
    return files_->host_of(number);
}

core::Result<int> SetTarget::subfile(std::uint32_t number)
{
    return files_->subfile(number);
}

core::Result<std::int64_t> SetTarget::end_of_chunks()
{
    return files_->end_of_chunks();
}

core::Status SetTarget::keep_beginning()
{
    std::array<std::byte, beginning_bytes> first = {};
    auto const read = Target::read(0, first);
    if (!read && has_tier_ && may_be_elsewhere(read.error())) return {};
    if (!read) return tl::unexpected(read.error());
    return write_beginning(descriptor(), std::span(first).first(*read));
}

core::Status SetTarget::close()
{
    auto status = begins_anew_ && stub_ ? keep_beginning() : core::Status();
    core::keep_first(status, files_->close());
    if (stub_) core::keep_first(status, stub_->close());
    return status;
}

core::Status SetTarget::grow(std::int64_t size)
{
    auto const now = files_->size();
    if (!now) return tl::unexpected(now.error());
    return *now < size ? resize_rest(size) : core::Status();
}

core::Status SetTarget::resize_rest(std::int64_t size)
{
    if (changes_) changes_->note();
    auto const rest = files_->rest(true);
    if (!rest) return tl::unexpected(rest.error());
    if (core::uninterrupted([&] { return ::ftruncate(*rest, size); }) != 0)
        return core::fail_errno(errno, "changing the size");
    return {};
}

}  // namespace tapioca::subfile
