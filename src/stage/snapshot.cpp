#include "stage/snapshot.hpp"

#include <chrono>
#include <thread>

#include <fmt/core.h>

namespace tapioca::stage {

namespace {

tl::unexpected<core::Failure> at(std::string const& path, core::Failure const& failure)
{
    return tl::unexpected(core::Failure{failure.code, failure.sys_errno, -1, path + ": " + failure.text});
}

/// Allocates as many bytes as a file claims to have, which may be any number.
core::Result<std::vector<std::byte>> room_for(std::uint64_t bytes)
try {
    return std::vector<std::byte>(bytes);
} catch (std::exception const&) {
    return core::fail(Errc::memory, fmt::format("no memory for {} bytes", bytes));
}

}  // namespace

core::Result<Snapshot> Snapshot::of(LogPlace const& place)
{
    auto meta = open_private(place.meta(), false);
    if (!meta) return tl::unexpected(meta.error());
    auto data = open_private(place.data(), false);
    if (!data) return tl::unexpected(data.error());
    Snapshot snapshot(place, std::move(*meta), std::move(*data));
    if (auto status = snapshot.refresh(); !status) return tl::unexpected(status.error());
    return snapshot;
}

/// While the log is being emptied, its head and its size may belong to different generations for a moment.
core::Status Snapshot::refresh()
{
    core::Status status;
    for (int turn = 0; turn < 5; ++turn) {
        status = load();
        if (status && image_->damage().empty()) return status;
        if (!is_live()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1 << turn));
    }
    return status;
}

core::Status Snapshot::load()
{
    auto const path = place_.meta();
    auto const size = size_of(meta_file_.get(), path);
    if (!size) return tl::unexpected(size.error());
    auto bytes = room_for(*size);
    if (!bytes) return at(path, bytes.error());
    if (auto status = read_all(meta_file_.get(), 0, *bytes); !status) return at(path, status.error());
    auto image = LogImage::of(*bytes);
    if (!image) return at(path, image.error());
    image_ = std::move(*image);
    meta_ = std::move(*bytes);  // the bytes of the image do not move
    return {};
}

core::Result<Head> Snapshot::head_now() const
{
    std::vector<std::byte> bytes(head_bytes);
    if (auto status = read_all(meta_file_.get(), 0, bytes); !status) return tl::unexpected(status.error());
    return read_head(bytes, meta_magic);
}

core::Status Snapshot::check_data_head() const
{
    std::vector<std::byte> bytes(head_bytes);
    if (auto status = read_all(data_file_.get(), 0, bytes); !status) return at(place_.data(), status.error());
    auto const head = read_head(bytes, data_magic);
    if (!head) return at(place_.data(), head.error());
    bool const same = head->generation == image_->head().generation || image_->ranks().empty();
    if (head->identity != image_->head().identity || !same)
        return core::fail(Errc::io, fmt::format("{}: does not belong to {}", place_.data(), place_.meta()));
    return {};
}

core::Result<std::vector<std::byte>> Snapshot::data_of(Note const& note, std::uint64_t generation) const
{
    auto const read = [&]() -> core::Result<std::vector<std::byte>> {
        auto const size = size_of(data_file_.get(), place_.data());
        if (!size) return tl::unexpected(size.error());
        if (note.position < head_bytes || note.position + note.data_bytes > *size)
            return core::fail(Errc::io, fmt::format("{}: the {} bytes at {} are not there", place_.data(),
                                                    note.data_bytes, note.position));
        auto bytes = room_for(note.data_bytes);
        if (!bytes) return bytes;
        if (auto status = read_all(data_file_.get(), note.position, *bytes); !status)
            return tl::unexpected(status.error());
        if (checksum_of(bytes->data(), bytes->size()) != note.data_checksum)
            return core::fail(Errc::io, fmt::format("{}: the {} bytes at {} do not match their checksum", place_.data(),
                                                    note.data_bytes, note.position));
        return bytes;
    };
    auto bytes = read();
    if (bytes) return bytes;
    auto const head = head_now();
    if (head ? head->generation != generation : is_live())
        return core::fail(Errc::invalid_state,
                          place_.data() + ": the log was emptied since, so the request is in the file");
    return bytes;
}

bool Snapshot::is_live() const
{
    return is_held(meta_file_);
}

}  // namespace tapioca::stage
