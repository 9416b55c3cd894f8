#include "subfile/split.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "stage/log_files.hpp"
#include "stage/marker.hpp"
#include "subfile/copy_stretch.hpp"
#include "subfile/set_directory.hpp"
#include "subfile/set_writer.hpp"
#include "target/target.hpp"

namespace tapioca::subfile {

namespace {

constexpr std::int64_t slice_unit = std::int64_t{1} << 20;
/// Bytes between two reports of progress.
constexpr std::int64_t copied_at_once = std::int64_t{64} << 20;

core::Status sync_file(int fd, std::string const& what)
{
    if (core::uninterrupted([&] { return ::fsync(fd); }) != 0 && errno != EINVAL) return core::fail_errno(errno, what);
    return {};
}

class FileSplitter {
public:
    using Report = std::function<void(std::uint64_t bytes)>;
    FileSplitter(std::string const& path, std::uint32_t subfiles)
        : path_(real_path(path)),
          subfiles_(subfiles),
          stub_{stage::new_identity(), directory_name(path_)},
          directory_path_(beside(path_, stub_.directory))
    {
    }

    core::Status open_file();
    core::Status begin();
    core::Status make_slices(Report const& report);
    core::Status replace_file();
    void clean_up();
    [[nodiscard]] SplitFacts facts() const { return {subfiles_, static_cast<std::uint64_t>(file_facts_.st_size)}; }

private:
    core::Status check_directory();
    [[nodiscard]] core::Status check_left_over(SetId const& identity) const;
    core::Status make_slice(std::uint32_t number, Report const& report);
    core::Status give_to_owner(int fd, std::string const& what, mode_t mode) const;
    [[nodiscard]] std::int64_t begin_of(std::uint32_t slice) const
    {
        return std::min<std::int64_t>(blocks_ * slice / subfiles_ * slice_unit, file_facts_.st_size);
    }

    std::string path_;
    std::uint32_t subfiles_;
    Stub stub_;
    std::string directory_path_;
    core::Descriptor file_;
    struct stat file_facts_ = {};
    std::int64_t blocks_ = 0;
    core::Descriptor note_;  ///< the stub before it takes the place of the file; locked
    core::Descriptor lock_;  ///< of the set
    core::Descriptor directory_;
    StretchCopier copier_;
    bool is_made_ = false;   ///< the directory is this split's
    bool replaced_ = false;  ///< the stub has the name of the file
};

core::Status FileSplitter::open_file()
{
    file_ =
        core::Descriptor(core::uninterrupted([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!file_ || ::fstat(file_.get(), &file_facts_) != 0) return core::fail_errno(errno, path_);
    if (!S_ISREG(file_facts_.st_mode)) return core::fail(Errc::invalid_state, path_ + " is not a plain file");
    auto const stub = read_stub(file_.get());
    if (!stub || *stub) return core::fail(Errc::invalid_state, path_ + " is a set of subfiles already");
    if (file_facts_.st_size == 0)
        return core::fail(Errc::invalid_state, path_ + " is empty: there is nothing to split");
    if (stage::has_marker(path_))
        return core::fail(Errc::invalid_state, fmt::format("{} has data in logs: `tapioca log recover` brings it into "
                                                           "the file",
                                                           path_));
    blocks_ = (file_facts_.st_size + slice_unit - 1) / slice_unit;
    subfiles_ = static_cast<std::uint32_t>(std::min<std::int64_t>(subfiles_, blocks_));
    return {};
}

/// Notes which set is made before anything of it exists, so that after a crash it is known to be nobody else's.
core::Status FileSplitter::begin()
{
    auto const name = splitting_name(path_);
    auto note = stage::open_private(name, true);
    if (!note && note.error().code == Errc::not_found) note = stage::create_private(name);
    if (!note) return tl::unexpected(note.error());
    if (!stage::hold_alone(*note) || !stage::is_named(*note, name))
        return core::fail(Errc::invalid_state, "another `tapioca subfile split` is at work on " + path_);
    note_ = std::move(*note);
    if (auto status = check_directory(); !status) return status;
    if (auto status = write_stub(note_.get(), stub_); !status) return status;
    std::array<std::byte, beginning_bytes> first = {};
    auto const known = std::span(first).first(std::min(first.size(), static_cast<std::size_t>(file_facts_.st_size)));
    if (auto status = core::read_all(file_.get(), 0, known, "the file"); !status) return status;
    if (auto status = write_beginning(note_.get(), known); !status) return status;
    if (auto status = sync_file(note_.get(), name); !status) return status;
    return target::sync_directory_of(path_);
}

/// The directory must not exist, or be empty, or be left over from a split of this file that was interrupted.
core::Status FileSplitter::check_directory()
{
    struct stat found = {};
    std::error_code error;
    if (::lstat(directory_path_.c_str(), &found) != 0 && errno == ENOENT) return {};
    if (S_ISDIR(found.st_mode) && std::filesystem::is_empty(directory_path_, error) && !error) return {};
    auto const before = read_stub(note_.get());
    if (before && *before && (*before)->directory == stub_.directory) {
        if (auto status = check_left_over((*before)->identity); !status) return status;
        return remove_set(directory_path_);
    }
    auto const failure =
        core::fail(Errc::invalid_state, directory_path_ +
                                            " exists already, and may hold the data of another file: move "
                                            "it away, or remove it");
    (void)::unlink(splitting_name(path_).c_str());
    return failure;
}

/// Fails if there is anything of another set in the directory.
core::Status FileSplitter::check_left_over(SetId const& identity) const
{
    auto const opened = open_directory(directory_path_);
    if (!opened) return tl::unexpected(opened.error());
    SetContents contents(opened->get(), identity);
    if (auto status = contents.refresh(); !status) return status;
    if (is_live(opened->get()))  // of this set or of another one
        return core::fail(Errc::invalid_state, directory_path_ + ": a job is writing these subfiles");
    WriterNote note = {};
    core::Descriptor const writer(core::uninterrupted(
        [&] { return ::openat(opened->get(), writer_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
    bool const whole =
        writer && core::read_all(writer.get(), 0, std::as_writable_bytes(std::span(&note, 1)), writer_name);
    if (whole && note.identity != identity)
        return core::fail(Errc::invalid_state, directory_path_ + " belongs to another file");
    return {};
}

/// The files of the set may be read and written by whoever could do that with the plain file.
core::Status FileSplitter::give_to_owner(int fd, std::string const& what, mode_t mode) const
{
    (void)!::fchown(fd, file_facts_.st_uid, file_facts_.st_gid);  // only root can
    return ::fchmod(fd, mode) == 0 ? core::Status() : core::fail_errno(errno, what);
}

core::Status FileSplitter::make_slices(Report const& report)
{
    auto lock = make_set(directory_path_, stub_.identity, {1, 1, subfiles_, "split", path_});
    if (!lock) return tl::unexpected(lock.error());
    lock_ = std::move(*lock);
    is_made_ = true;
    auto directory = open_directory(directory_path_);
    if (!directory) return tl::unexpected(directory.error());
    directory_ = std::move(*directory);
    // Who may read the file may search the directory.
    auto const mode = file_facts_.st_mode & 0777;
    auto status = give_to_owner(directory_.get(), directory_path_, mode | 0700 | (mode & 0444) >> 2);
    for (std::uint32_t i = 0; status && i < subfiles_; ++i) status = make_slice(i, report);
    return status;
}

core::Status FileSplitter::make_slice(std::uint32_t number, Report const& report)
{
    auto const begin = begin_of(number);
    auto const bytes = begin_of(number + 1) - begin;
    Extent const extent{begin, bytes};
    auto const variable =
        std::make_shared<pattern::Variable const>(pattern::Variable::from_extents(0, std::span(&extent, 1)));
    auto entries = encode_part({variable}, 0);
    if (!entries) return tl::unexpected(entries.error());
    SetWriter writer({directory_path_, stub_.identity, 1, number, slice_unit, true}, 1);
    auto const form = writer.add_form(static_cast<std::uint64_t>(bytes));
    writer.describe(form, {std::move(*entries), true});
    auto const position = static_cast<std::int64_t>(writer.position_of(form, 0));
    core::Descriptor const subfile(core::uninterrupted(
        [&] { return ::open(writer.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600); }));
    if (!subfile) return core::fail_errno(errno, writer.path());
    if (core::uninterrupted([&] { return ::ftruncate(subfile.get(), position + bytes); }) != 0)
        return core::fail_errno(errno, writer.path());
    auto status = give_to_owner(subfile.get(), writer.path(), file_facts_.st_mode & 0777);
    for (std::int64_t done = 0; status && done < bytes; done += copied_at_once) {
        auto const part = std::min(copied_at_once, bytes - done);
        status = copier_.copy(file_.get(), begin + done, subfile.get(), position + done, part);
        if (!status) status.error().text = writer.path() + ": " + status.error().text;
        report(static_cast<std::uint64_t>(part));
    }
    if (status) status = sync_file(subfile.get(), writer.path());
    if (status) status = writer.note_chunk(form, 0);
    if (status) status = writer.sync();
    return status;
}

core::Status FileSplitter::replace_file()
{
    struct stat now = {};
    auto const same = [&] {
        return now.st_ino == file_facts_.st_ino && now.st_size == file_facts_.st_size &&
               now.st_mtim.tv_sec == file_facts_.st_mtim.tv_sec && now.st_mtim.tv_nsec == file_facts_.st_mtim.tv_nsec;
    };
    if (auto status = complete_set(directory_.get(), stub_.identity, true); !status) return status;
    core::Descriptor const index(core::uninterrupted(
        [&] { return ::openat(directory_.get(), index_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
    if (!index) return core::fail_errno(errno, directory_path_ + "/" + index_name);
    if (auto status = give_to_owner(index.get(), "the index", file_facts_.st_mode & 0777); !status) return status;
    if (auto status = target::sync_directory_of(directory_path_); !status) return status;
    if (::stat(path_.c_str(), &now) != 0 || !same())
        return core::fail(Errc::invalid_state, path_ + " was changed while it was split");
    auto const name = splitting_name(path_);
    if (auto status = give_to_owner(note_.get(), name, now.st_mode & 0777); !status) return status;
    if (auto status = sync_file(note_.get(), name); !status) return status;
    if (::rename(name.c_str(), path_.c_str()) != 0) return core::fail_errno(errno, path_);
    replaced_ = true;
    link_stub(path_, directory_path_);
    return target::sync_directory_of(path_);
}

/// After a failure: the file is as it was, and what was made takes no space.
void FileSplitter::clean_up()
{
    if (replaced_ || !note_) return;
    if (is_made_) (void)remove_set(directory_path_);
    struct stat found = {};
    bool const is_gone = ::lstat(directory_path_.c_str(), &found) != 0 && errno == ENOENT;
    if (is_gone) (void)::unlink(splitting_name(path_).c_str());  // otherwise it says whose the directory is
}

}  // namespace

std::string splitting_name(std::string const& path)
{
    return path + ".splitting";
}

core::Result<SplitFacts> split(std::string const& path, std::uint32_t subfiles,
                               std::function<void(std::uint64_t bytes)> const& progress)
{
    if (subfiles < 1 || subfiles > most_subfiles)
        return core::fail(Errc::setting, fmt::format("a set has from 1 to {} subfiles", most_subfiles));
    FileSplitter splitter(path, subfiles);
    if (auto status = splitter.open_file(); !status) return tl::unexpected(status.error());
    auto status = splitter.begin();
    if (status) status = splitter.make_slices(progress);
    if (status) status = splitter.replace_file();
    if (status) return splitter.facts();
    splitter.clean_up();
    return tl::unexpected(status.error());
}

}  // namespace tapioca::subfile
