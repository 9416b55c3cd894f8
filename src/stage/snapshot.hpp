// Snapshot: a log as it was at one moment. It is read and never mapped, because its writer may go on and may truncate
// it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stage/log_files.hpp"
#include "stage/log_image.hpp"

namespace tapioca::stage {

class Snapshot {
public:
    /// Opens a log, which must be private to this user, and reads its entries.
    static core::Result<Snapshot> of(LogPlace const& place);
    /// Reads the entries again. Invalidates what image() returned.
    core::Status refresh();

    [[nodiscard]] LogPlace const& place() const { return place_; }
    [[nodiscard]] LogImage const& image() const { return *image_; }
    [[nodiscard]] std::uint64_t meta_bytes() const { return meta_.size(); }
    /// The bytes of a request of the generation that was read. Their checksum is verified.
    [[nodiscard]] core::Result<std::vector<std::byte>> data_of(Note const& note, std::uint64_t generation) const;
    /// Fails unless the head of NAME.data matches that of NAME.meta.
    [[nodiscard]] core::Status check_data_head() const;
    /// True if a process has the log open for writing, as far as can be seen from here.
    [[nodiscard]] bool is_live() const;

private:
    Snapshot(LogPlace place, Descriptor meta, Descriptor data)
        : place_(std::move(place)), meta_file_(std::move(meta)), data_file_(std::move(data))
    {
    }
    core::Status load();
    [[nodiscard]] core::Result<Head> head_now() const;

    LogPlace place_;
    Descriptor meta_file_;
    Descriptor data_file_;
    std::vector<std::byte> meta_;
    std::optional<LogImage> image_;
};

}  // namespace tapioca::stage
