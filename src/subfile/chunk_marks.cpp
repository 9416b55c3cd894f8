#include "subfile/chunk_marks.hpp"

#include <algorithm>
#include <cstring>

#include "core/interrupt.hpp"
#include "stage/log_files.hpp"

namespace tapioca::subfile {

namespace {

constexpr char const* marks_magic = "TAPIJOIN";
constexpr std::uint32_t marks_version = 1;

std::uint64_t checksum_of(MarksHead const& head)
{
    return stage::checksum_of(&head, offsetof(MarksHead, checksum));
}

core::Status empty(int fd, char const* what)
{
    if (core::uninterrupted([&] { return ::ftruncate(fd, 0); }) != 0) return core::fail_errno(errno, what);
    return {};
}

}  // namespace

core::Result<bool> ChunkMarks::open(std::string const& path, MarksHead head, std::uint64_t chunks)
{
    std::memcpy(head.magic, marks_magic, sizeof head.magic);
    head.version = marks_version;
    head.bytes = sizeof head;
    head.checksum = checksum_of(head);
    head_ = head;
    marks_.assign(chunks, std::byte{0});
    auto const before = look(path);
    auto file = stage::open_private(path, true);
    if (!file && file.error().code == Errc::not_found) file = stage::create_private(path);
    if (!file) return tl::unexpected(file.error());
    file_ = std::move(*file);
    bool const same = before && head.kernels != 0 && std::memcmp(&*before, &head, sizeof head) == 0;
    return same && core::read_all(file_.get(), sizeof head_, marks_, "the marks");
}

core::Status ChunkMarks::begin(int unfinished)
{
    std::fill(marks_.begin(), marks_.end(), std::byte{0});
    auto status = empty(file_.get(), "emptying the marks");
    if (status) status = empty(unfinished, "emptying the unfinished file");
    if (status) status = core::write_all(file_.get(), sizeof head_, marks_, "the marks");
    if (status) status = core::write_all(file_.get(), 0, std::as_bytes(std::span(&head_, 1)), "the marks");
    if (status && core::uninterrupted([&] { return ::fsync(file_.get()); }) != 0 && errno != EINVAL)
        status = core::fail_errno(errno, "the marks");  // otherwise other hosts may not see them
    return status;
}

core::Status ChunkMarks::attach(std::string const& path, std::uint64_t chunks)
{
    auto file = stage::open_private(path, true);
    if (!file) return tl::unexpected(file.error());
    file_ = std::move(*file);
    marks_.assign(chunks, std::byte{0});
    return core::read_all(file_.get(), sizeof head_, marks_, "the marks");
}

std::uint64_t ChunkMarks::count() const
{
    return static_cast<std::uint64_t>(std::count(marks_.begin(), marks_.end(), std::byte{1}));
}

core::Status ChunkMarks::set(std::uint64_t chunk)
{
    marks_[chunk] = std::byte{1};
    return core::write_all(file_.get(), sizeof head_ + chunk, std::span(marks_).subspan(chunk, 1), "the marks");
}

std::optional<MarksHead> ChunkMarks::look(std::string const& path)
{
    MarksHead head = {};
    auto const file = stage::open_private(path, false);
    if (!file || !core::read_all(file->get(), 0, std::as_writable_bytes(std::span(&head, 1)), "the marks"))
        return std::nullopt;
    bool const sound = std::memcmp(head.magic, marks_magic, sizeof head.magic) == 0 &&
                       head.checksum == checksum_of(head) && head.directory[sizeof head.directory - 1] == 0;
    return sound ? std::optional(head) : std::nullopt;
}

}  // namespace tapioca::subfile
