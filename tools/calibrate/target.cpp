#include "target.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/units.hpp"

namespace calibrate {

namespace {

using namespace tapioca;
using core::MiB;

constexpr std::size_t piece = MiB;

/// A file that rank 0 creates and all ranks open.
class SharedFile {
public:
    /// Collective.
    static core::Result<SharedFile> make(comm::Team const& team, std::string const& directory)
    {
        SharedFile file;
        core::Status status;
        auto name = directory + "/.tapioca-calibrate-XXXXXX";
        if (team.rank() == 0) {
            file.file_ = core::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
            if (!file.file_)
                status = core::fail_errno(errno, "making a file in " + directory);
            else
                file.name_ = name;
        }
        if (status = comm::agree(team.all(), status); !status) return tl::unexpected(status.error());
        // The inode is checked, too: the file is emptied and filled, so nobody may put another file there meanwhile.
        struct stat info = {};
        if (team.rank() == 0) (void)::fstat(file.fd(), &info);
        name = comm::broadcast(team.all(), std::to_string(info.st_ino) + " " + name);
        auto const number = name.substr(0, name.find(' '));
        name = name.substr(number.size() + 1);
        if (team.rank() != 0) {
            file.file_ = core::Descriptor(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
            bool const opened = file.file_ && ::fstat(file.fd(), &info) == 0;
            if (opened && (std::to_string(info.st_ino) != number || info.st_uid != ::geteuid()))
                status = core::fail(tapioca::Errc::io, name + ": another file has this name by now");
            else if (!opened)
                status =
                    core::fail_errno(errno, fmt::format("--dir: {} is not one directory for all nodes: rank {} cannot "
                                                        "open what rank 0 made there",
                                                        directory, team.rank()));
        }
        if (status = comm::agree(team.all(), status); !status) return tl::unexpected(status.error());
        return file;
    }
    SharedFile(SharedFile&& other) noexcept : file_(std::move(other.file_)), name_(std::exchange(other.name_, {})) {}
    SharedFile& operator=(SharedFile&&) = delete;
    ~SharedFile() { unlink(); }
    /// The data stays as long as the file is open. Local; has an effect only on rank 0.
    void unlink()
    {
        if (!name_.empty()) ::unlink(name_.c_str());
        name_.clear();
    }
    [[nodiscard]] int fd() const { return file_.get(); }

private:
    SharedFile() = default;
    core::Descriptor file_;
    std::string name_;
};

/// Moves `bytes` from `offset` on in pieces; `call` is pwrite or pread.
template <class Call>
core::Status move(Call call, int fd, std::vector<char>& data, std::uint64_t offset, std::uint64_t bytes)
{
    for (std::uint64_t done = 0; done < bytes;) {
        auto const size = std::min<std::uint64_t>(data.size(), bytes - done);
        auto const moved = call(fd, data.data(), size, static_cast<off_t>(offset + done));
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0) return core::fail_errno(errno, fmt::format("{} bytes at {}", size, offset + done));
        if (moved == 0) return core::fail(tapioca::Errc::io, fmt::format("the file ends at {}", offset + done));
        done += static_cast<std::uint64_t>(moved);
    }
    return {};
}

class Measuring {
public:
    Measuring(Crew const& crew, SharedFile const& file, bool remote)
        : crew_(crew), fd_(file.fd()), remote_(remote), data_(piece, 'x')
    {
        auto const& nodes = crew.team().nodes();
        for (std::size_t i = 0; order_.size() < static_cast<std::size_t>(crew.team().size()); ++i)
            for (auto const& ranks : nodes)
                if (i < ranks.size()) order_.push_back(ranks[i]);
    }

    /// Seconds in which `streams` ranks write `bytes`, each a part, into the empty file.
    core::Result<double> write(int streams, std::uint64_t bytes)
    {
        core::Status local;
        if (crew_.team().rank() == 0 && ::ftruncate(fd_, 0) != 0) local = core::fail_errno(errno, "emptying the file");
        return timed(place(0) < streams, local, [&](core::Status& status) {
            auto const part = bytes / static_cast<std::uint64_t>(streams);
            status = move(::pwrite, fd_, data_, static_cast<std::uint64_t>(place(0)) * part, part);
            if (status && remote_ && ::fdatasync(fd_) != 0) status = core::fail_errno(errno, "fsync");
        });
    }

    /// The same for reading; every part is read by another rank than the one that wrote it, on another node if
    /// possible.
    core::Result<double> read(int streams, std::uint64_t bytes)
    {
        if (remote_) (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
        return timed(place(1) < streams, {}, [&](core::Status& status) {
            auto const part = bytes / static_cast<std::uint64_t>(streams);
            status = move(::pread, fd_, data_, static_cast<std::uint64_t>(place(1)) * part, part);
        });
    }

    core::Result<double> call()
    {
        double median_s = 0;
        auto const spent = timed(place(0) == 0, {}, [&](core::Status& status) {
            median_s = median(repeat(20, 2000, 0.1, [&] {
                if (::pwrite(fd_, data_.data(), 8, 0) < 0) core::keep_first(status, core::fail_errno(errno, "8 bytes"));
            }));
        });
        if (!spent) return tl::unexpected(spent.error());
        return crew_.most(median_s);
    }

private:
    /// This rank's place among those that take part, with nodes in turn; the first `shift` come last.
    [[nodiscard]] int place(int shift) const
    {
        auto const at = std::find(order_.begin(), order_.end(), crew_.team().rank()) - order_.begin();
        auto const size = static_cast<int>(order_.size());
        return (static_cast<int>(at) - shift + size) % size;
    }

    template <class Work>
    core::Result<double> timed(bool mine, core::Status local, Work const& work)
    {
        double spent_s = 0;
        crew_.meet(mine);
        if (mine) {
            core::Status status;
            auto const begin = now();
            work(status);
            spent_s = now() - begin;
            core::keep_first(local, status);
        }
        crew_.meet(mine);
        auto const status = comm::agree(crew_.team().all(), local);
        if (!status) return tl::unexpected(status.error());
        return crew_.most(spent_s);
    }

    Crew const& crew_;
    int fd_;
    bool remote_;
    std::vector<char> data_;
    std::vector<int> order_;
};

std::vector<int> numbers_of_streams(int ranks)
{
    std::vector<int> numbers;
    for (int n = 1; n < ranks; n *= 2) numbers.push_back(n);
    numbers.push_back(ranks);
    return numbers;
}

/// So many bytes that writing them takes a noticeable time at the rate of a first try, but not a large part of the free
/// space.
core::Result<std::uint64_t> choose_bytes(Crew const& crew, Measuring& measuring, std::string const& directory)
{
    struct statvfs info = {};
    double free = 1e18;
    if (::statvfs(directory.c_str(), &info) == 0)
        free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
    auto const share = crew.told_by(0, {free / 4})[0];
    constexpr auto least = static_cast<double>(MiB);
    auto const trial = std::clamp(share, least, (crew.quick() ? 4 : 16) * least);
    auto const spent_s = measuring.write(1, static_cast<std::uint64_t>(trial));
    if (!spent_s) return tl::unexpected(spent_s.error());
    auto const wanted = std::clamp(trial / *spent_s * (crew.quick() ? 0.02 : 0.15), trial, 512 * least);
    return static_cast<std::uint64_t>(std::clamp(wanted, least, std::max(least, share)));
}

core::Result<TargetFigures> measure(Crew const& crew, std::string const& directory)
{
    auto file = SharedFile::make(crew.team(), directory);
    if (!file) return tl::unexpected(file.error());
    TargetFigures figures;
    auto const storage = machine::storage_of(file->fd());
    auto const known = comm::agree(crew.team().all(), storage ? core::Status() : tl::unexpected(storage.error()));
    if (!known) return tl::unexpected(known.error());
    figures.storage = *storage;
    // Servers may forget a file without a name that another client has open.
    bool const remote = crew.most(machine::reach_of(file->fd()) == machine::Reach::one_host ? 0 : 1) > 0;
    if (!remote) file->unlink();

    Measuring measuring(crew, *file, remote);
    auto const numbers = numbers_of_streams(crew.team().size());
    int const all = 2 * static_cast<int>(numbers.size());
    crew.show("target", 1, all, "first try");
    auto const bytes = choose_bytes(crew, measuring, directory);
    if (!bytes) return tl::unexpected(bytes.error());
    figures.bytes = *bytes;
    auto const call_s = measuring.call();
    if (!call_s) return tl::unexpected(call_s.error());
    figures.call_s = *call_s;

    int const repetitions = crew.quick() ? 2 : 5;
    int n = 0;
    for (int const streams : numbers) {
        auto const unit = piece * static_cast<std::uint64_t>(streams);
        auto const whole = std::max(unit, *bytes / unit * unit);
        Streams row{streams};
        for (auto const how : {&Measuring::write, &Measuring::read}) {
            bool const writes = how == &Measuring::write;
            crew.show("target", ++n, all, fmt::format("{} {}", streams, writes ? "writing" : "reading"));
            std::vector<double> times;
            for (int i = 0; i < repetitions; ++i) {
                auto const spent_s = (measuring.*how)(streams, whole);
                if (!spent_s) return tl::unexpected(spent_s.error());
                times.push_back(*spent_s);
            }
            (writes ? row.write : row.read) = static_cast<double>(whole) / median(times);
        }
        figures.rows.push_back(row);
    }
    return figures;
}

}  // namespace

Streams const& enough(std::vector<Streams> const& rows, double Streams::*rate)
{
    double best = 0;
    for (auto const& row : rows) best = std::max(best, row.*rate);
    return *std::find_if(rows.begin(), rows.end(), [&](Streams const& row) { return row.*rate >= 0.95 * best; });
}

core::Result<TargetFigures> measure_target(Crew const& crew, std::string const& directory)
{
    auto figures = measure(crew, directory);
    if (!figures) {
        auto failure = figures.error();
        if (failure.code == tapioca::Errc::no_space)
            failure.text =
                fmt::format("{}: no space left: make room there, or name another directory with --dir", directory);
        return tl::unexpected(std::move(failure));
    }
    auto& storage = figures->storage;
    auto const& write = enough(figures->rows, &Streams::write);
    auto const& read = enough(figures->rows, &Streams::read);
    storage.write_streams = write.count;
    storage.read_streams = read.count;
    storage.write_bw = write.write / write.count;
    storage.read_bw = read.read / read.count;
    storage.call_s = figures->call_s;
    return figures;
}

}  // namespace calibrate
