#include "subfile/join.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "stage/log_files.hpp"
#include "stage/marker.hpp"

namespace tapioca::subfile {

namespace {

/// Bytes of the file that are looked at, or assembled, at a time.
constexpr std::int64_t block_bytes = std::int64_t{4} << 20;
/// Pieces from this size on are copied by the system, smaller ones are assembled in memory.
constexpr std::int64_t large_piece = std::int64_t{128} << 10;

std::uint64_t inode_of(int fd)
{
    struct stat file = {};
    return ::fstat(fd, &file) == 0 ? file.st_ino : 0;
}

/// The unfinished file. It belongs to this user, or to the owner of the stub if a join by root was interrupted at its
/// end; whatever else has this name, somebody may have put there.
core::Result<core::Descriptor> open_unfinished(std::string const& path, uid_t owner, int flags)
{
    core::Descriptor file(core::uninterrupted(
        [&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600); }));
    if (!file) return core::fail_errno(errno, path);
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, path);
    if (!S_ISREG(found.st_mode) || found.st_nlink > 1 || (found.st_uid != ::geteuid() && found.st_uid != owner))
        return core::fail(Errc::permission, path + " is in the way, and is not an unfinished file of this user");
    if ((found.st_mode & 077) != 0 && ::fchmod(file.get(), 0600) != 0) return core::fail_errno(errno, path);
    return file;
}

core::Status set_size(int fd, std::int64_t size, char const* what)
{
    if (core::uninterrupted([&] { return ::ftruncate(fd, size); }) != 0) return core::fail_errno(errno, what);
    return {};
}

/// A piece of the file, and where its data lies.
struct Piece {
    std::int64_t offset, length;
    int fd;
    std::int64_t at;
};

/// Takes the pieces of a chunk in ascending order and brings them into the plain file.
class PieceCopier {
public:
    PieceCopier(SetTarget& source, StretchCopier& copier, int to) : source_(source), copier_(copier), to_(to) {}

    core::Status add(Piece const& piece)
    {
        if (last_.fd == piece.fd && last_.offset + last_.length == piece.offset &&
            last_.at + last_.length == piece.at) {
            last_.length += piece.length;
            return {};
        }
        auto status = place(last_);
        last_ = piece;
        return status;
    }
    core::Status finish()
    {
        auto status = place(last_);
        return status ? assemble() : status;
    }

private:
    core::Status place(Piece const& piece)
    {
        if (piece.length == 0) return {};
        auto const end = piece.offset + piece.length;
        bool const large = piece.length >= large_piece;
        if (large || piece.offset - end_ >= smallest_hole || end - begin_ > block_bytes)
            if (auto status = assemble(); !status) return status;
        if (large) return copier_.copy(piece.fd, piece.at, to_, piece.offset, piece.length);
        if (begin_ == end_) begin_ = piece.offset;
        end_ = end;
        return {};
    }
    /// Writes the small pieces that have gathered, and what lies between them.
    core::Status assemble()
    {
        auto const bytes = end_ - begin_;
        if (bytes <= 0) return {};
        buffer_.resize(static_cast<std::size_t>(bytes));
        auto const read = source_.read(begin_, std::span<std::byte>(buffer_));
        if (!read) return tl::unexpected(read.error());
        if (*read != buffer_.size()) return core::fail(Errc::io, "the set became shorter while it was read");
        auto status = core::write_all(to_, static_cast<std::uint64_t>(begin_), buffer_, "the plain file");
        begin_ = end_ = 0;
        return status;
    }

    SetTarget& source_;
    StretchCopier& copier_;
    int to_;
    Piece last_ = {0, 0, -1, 0};
    std::int64_t begin_ = 0;  ///< of what is to be assembled
    std::int64_t end_ = 0;
    std::vector<std::byte> buffer_;
};

}  // namespace

std::string resolved(std::string const& path)
{
    std::error_code error;
    if (!std::filesystem::is_symlink(path, error)) return path;
    auto const real = std::filesystem::canonical(path, error);
    return error ? path : real.string();
}

Join::Join(std::string path, std::string output, Stub stub)
    : path_(std::move(path)),
      result_(output.empty() ? path_ : std::move(output)),
      stub_(std::move(stub)),
      directory_path_(beside(path_, stub_.directory)),
      contents_(-1, stub_.identity)
{
}

Join::~Join()
{
    if (lock_) give_back_lock(directory_.get(), contents_);  // then the set is as it was
}

core::Result<std::unique_ptr<Join>> Join::open(std::string const& given, std::string const& output)
{
    auto const path = real_path(given);
    auto const stub = find_stub(path);
    if (!stub) return tl::unexpected(stub.error());
    if (!*stub) {
        if (::access(path.c_str(), R_OK) != 0) return core::fail_errno(errno, path);
        return core::fail(Errc::invalid_state, path + " is not a set of subfiles");
    }
    if (stage::has_marker(path))
        return core::fail(Errc::invalid_state, fmt::format("{} has data in logs: `tapioca log recover {}` writes it to "
                                                           "the file",
                                                           path, core::shell_word(path)));
    std::unique_ptr<Join> join(new Join(path, output, **stub));
    auto status = join->open_source();
    if (status && !output.empty()) status = join->check_output();
    if (status) status = join->check_files();
    if (!status) return tl::unexpected(status.error());
    return join;
}

core::Status Join::open_source()
{
    struct stat file = {};
    if (::stat(path_.c_str(), &file) != 0) return core::fail_errno(errno, path_);
    owner_ = file.st_uid;
    auto directory = open_directory(directory_path_);
    if (!directory) return tl::unexpected(directory.error());
    directory_ = std::move(*directory);
    if (auto status = check_usable(path_, stub_); !status) return status;
    core::Descriptor const stub(core::uninterrupted([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC); }));
    if (auto status = replaces() ? check_own_directory(path_, stub_, stub.get()) : core::Status(); !status)
        return status;
    contents_ = SetContents(directory_.get(), stub_.identity);
    if (auto status = contents_.refresh(); !status) return status;
    if (contents_.state() == SetState::live)
        return core::fail(Errc::invalid_state,
                          fmt::format("a job is writing these subfiles (process {} on {}): wait until it ends",
                                      contents_.writer().process, contents_.writer().host));
    source_ = std::make_unique<SetTarget>(nullptr, directory_path_, stub_.identity, target::OpenMode::read);
    facts_ = facts_of_set();
    auto const size = source_->size();
    if (!size) return tl::unexpected(size.error());
    size_ = static_cast<std::int64_t>(*size);
    chunks_ = static_cast<std::uint64_t>((size_ + chunk_bytes - 1) / chunk_bytes);
    rest_ = core::Descriptor(core::uninterrupted(
        [&] { return ::openat(directory_.get(), rest_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
    if (!rest_ && errno != ENOENT) return core::fail_errno(errno, directory_path_ + "/" + rest_name);
    return {};
}

/// A number that is another one as soon as a file of the set was changed.
std::uint64_t Join::facts_of_set() const
{
    auto sum = core::digest({});
    auto const add = [&](std::string const& name) {
        struct stat file = {};
        bool const exists = ::fstatat(directory_.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0;
        sum = core::digest(exists ? fmt::format("{} {} {} {}.{}\n", name, file.st_ino, file.st_size,
                                                file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
                                  : name,
                           sum);
    };
    add(index_name);
    add(rest_name);
    for (auto const& [number, bytes] : contents_.map().subfiles()) add(subfile_name(number));
    return sum;
}

core::Status Join::prepare(std::uint64_t kernels)
{
    auto file = open_unfinished(temporary(), owner_, O_CREAT);
    if (!file) return tl::unexpected(file.error());
    if (!stage::hold_alone(*file) || !stage::is_named(*file, temporary()))  // it may have got its name just now
        return core::fail(Errc::invalid_state, fmt::format("another `tapioca subfile join` is making {}", result_));
    to_ = std::move(*file);
    if (replaces())
        if (auto status = lock_set(); !status) return status;
    if (facts_of_set() != facts_)
        return core::fail(Errc::invalid_state, "a job has changed these subfiles just now: join them again");
    MarksHead head = {};
    head.identity = stub_.identity;
    head.generation = contents_.head().generation;
    head.facts = facts_;
    head.kernels = kernels;
    head.inode = inode_of(to_.get());
    head.size = size_;
    head.chunk_bytes = chunk_bytes;
    stub_.directory.copy(head.directory, sizeof head.directory - 1);
    auto const goes_on = marks_.open(marks_path(), head, chunks_);
    if (!goes_on) return tl::unexpected(goes_on.error());
    if (!*goes_on)
        if (auto status = marks_.begin(to_.get()); !status) return status;
    return set_size(to_.get(), size_, "setting the size of the plain file");
}

/// Nobody adds chunks while the set is being replaced.
core::Status Join::lock_set()
{
    auto const generation = contents_.head().generation;
    auto locked = take_lock(directory_.get(), contents_, stub_.identity, {1, 1, 0, "join", path_});
    if (!locked) return tl::unexpected(locked.error());
    if (!*locked) return core::fail(Errc::invalid_state, "a job is writing these subfiles: wait until it ends");
    lock_ = std::move(**locked);
    auto const status = contents_.refresh();
    if (status && contents_.head().generation != generation)
        return core::fail(Errc::invalid_state, "a job has changed these subfiles just now: join them again");
    return status;
}

core::Status Join::attach()
{
    auto file = open_unfinished(temporary(), owner_, 0);
    if (!file) return tl::unexpected(file.error());
    to_ = std::move(*file);
    auto const head = ChunkMarks::look(marks_path());
    if (!head || head->identity != stub_.identity || head->size != size_ ||
        head->generation != contents_.head().generation)
        return core::fail(Errc::invalid_state,
                          "the subfiles, or the marks of this join, were changed just now: join "
                          "them again");
    return marks_.attach(marks_path(), chunks_);
}

std::int64_t Join::bytes_of(std::uint64_t chunk) const
{
    return std::min(chunk_bytes, size_ - static_cast<std::int64_t>(chunk) * chunk_bytes);
}

core::Status Join::copy(std::uint64_t chunk)
{
    auto const begin = static_cast<std::int64_t>(chunk) * chunk_bytes;
    auto const end = begin + bytes_of(chunk);
    auto const rest_size = rest_ ? core::size_of(rest_.get(), rest_name) : core::Result<std::uint64_t>(0);
    if (!rest_size) return tl::unexpected(rest_size.error());
    auto const rest_end = static_cast<std::int64_t>(*rest_size);
    PieceCopier pieces(*source_, copier_, to_.get());
    auto const add_from_rest = [&](std::int64_t from, std::int64_t to) {
        return pieces.add({from, to - from, rest_.get(), from});
    };
    auto const visit = [&](std::int64_t offset, std::int64_t length, int fd, std::int64_t at) {
        if (fd >= 0) return pieces.add({offset, length, fd, at});
        auto const to = std::min(offset + length, rest_end);
        if (to <= offset) return core::Status();
        if (to - offset < smallest_hole) return add_from_rest(offset, to);  // not worth a look
        return copier_.each_data(rest_.get(), offset, to, add_from_rest);
    };
    core::Status status;
    for (auto at = begin; status && at < end; at += block_bytes)
        status = source_->each_stretch(at, std::min(at + block_bytes, end), visit);
    if (status) status = pieces.finish();
    if (!status) return status;
    // The device gets to work while the next part is copied, and not only at the end. Failures come to light there.
    (void)::sync_file_range(to_.get(), begin, end - begin, SYNC_FILE_RANGE_WRITE);
    return marks_.set(chunk);
}

core::Status Join::sync()
{
    if (core::uninterrupted([&] { return ::fsync(to_.get()); }) == 0) return {};
    auto const failure = core::fail_errno(errno, "making the plain file durable");
    (void)::unlink(marks_path().c_str());  // nobody knows what the file has now
    return failure;
}

core::Status Join::finish(bool keep)
{
    if (facts_of_set() != facts_)
        return core::fail(Errc::invalid_state, "the subfiles were changed while they were joined: join them again");
    bool const removes = replaces() && !keep;
    if (!removes) (void)::unlink(marks_path().c_str());  // while they are there, they say that the set may go
    auto status = give_name();
    if (status && removes) status = remove_set(directory_path_);
    if (status && removes) {
        lock_ = {};
        (void)::unlink(marks_path().c_str());
    }
    return status;
}

core::Status Join::give_name()
{
    struct stat before = {};
    auto const now = find_stub(path_);
    if (!now || !*now || (*now)->identity != stub_.identity || ::stat(path_.c_str(), &before) != 0)
        return core::fail(Errc::invalid_state, path_ + " was replaced by another file meanwhile");
    if (auto status = set_size(to_.get(), size_, "setting the size of the plain file"); !status) return status;
    (void)!::fchown(to_.get(), before.st_uid, before.st_gid);  // only root can
    if (::fchmod(to_.get(), before.st_mode & 0777) != 0) return core::fail_errno(errno, "setting the permissions");
    if (auto status = sync(); !status) return status;
    if (::rename(temporary().c_str(), result_.c_str()) != 0) return core::fail_errno(errno, result_);
    return target::sync_directory_of(result_);
}

core::Result<bool> Join::finish_removal(std::string const& path)
{
    auto const marks = path + ".joining.done";
    auto const head = ChunkMarks::look(marks);
    struct stat plain = {};
    if (!head || ::stat(path.c_str(), &plain) != 0 || plain.st_ino != head->inode || plain.st_size != head->size)
        return false;
    // The name may not have been durable when the join ended.
    if (auto status = target::sync_directory_of(path); !status) return tl::unexpected(status.error());
    auto const directory = beside(path, head->directory);
    auto const opened = open_directory(directory);
    if (opened) {
        SetContents contents(opened->get(), head->identity);
        auto const status = contents.refresh();
        if (!status) return tl::unexpected(status.error());
        if (is_live(opened->get()))  // of this set or of another one
            return core::fail(Errc::invalid_state, directory + ": a job is writing these subfiles");
        if (auto removed = remove_set(directory); !removed) return tl::unexpected(removed.error());
    } else if (opened.error().code != Errc::not_found) {
        return tl::unexpected(opened.error());
    }
    (void)::unlink(marks.c_str());
    return true;
}

}  // namespace tapioca::subfile
