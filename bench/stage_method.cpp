#include "stage_method.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "mpi_calls.hpp"
#include "timing.hpp"

namespace bench {

namespace {

constexpr std::int64_t copy_bytes = 1 << 20;    // bytes of one read and one write
constexpr std::int64_t round_bytes = 16 << 20;  // bytes of a rank in one collective call
constexpr std::size_t round_pieces = 1 << 16;

[[noreturn]] void fail(std::string const& what)
{
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

using tapioca::core::Descriptor;

Descriptor open_file(std::string const& path, int flags)
{
    Descriptor file(::open(path.c_str(), flags, 0666));
    if (!file) fail(path);
    return file;
}

void read_at(Descriptor const& file, std::span<std::byte> to, std::int64_t offset)
{
    auto const status =
        tapioca::core::read_all(file.get(), static_cast<std::uint64_t>(offset), to, "a file on the fast tier");
    if (!status) throw std::runtime_error(status.error().text);
}

void write_at(Descriptor const& file, std::span<std::byte const> from, std::int64_t offset)
{
    auto const status = tapioca::core::write_all(file.get(), static_cast<std::uint64_t>(offset), from, "the target");
    if (!status) throw std::runtime_error(status.error().text);
}

void append(Descriptor const& file, std::span<std::byte const> from)
{
    for (std::size_t done = 0; done < from.size();) {
        auto const put = ::write(file.get(), from.data() + done, from.size() - done);
        if (put < 0) fail("writing a log");
        done += static_cast<std::size_t>(put);
    }
}

/// A new file in `directory`, and its descriptor.
std::pair<std::string, int> new_file(std::string const& directory)
{
    auto path = directory + "/tapioca-bench.XXXXXX";
    int const fd = ::mkstemp(path.data());
    if (fd < 0) fail(path);
    return {path, fd};
}

/// A log of this process alone. It has no name, so nothing is left behind.
Descriptor new_log(std::string const& directory)
{
    auto const [path, fd] = new_file(directory);
    ::unlink(path.c_str());
    return Descriptor(fd);
}

/// Rank 0 creates a new file. Returns its path on all ranks. Collective.
std::string new_shared_file(MPI_Comm comm, std::string const& directory)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::array<char, 4096> name{};
    if (rank == 0) {
        auto const [path, fd] = new_file(directory);
        ::close(fd);
        path.copy(name.data(), name.size() - 1);
    }
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, comm);
    return name.data();
}

class StageOut final : public Method {
public:
    StageOut(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
        : comm_(comm),
          workload_(workload),
          directory_(setup.stage.directory),
          inner_(make_method("collective", comm, workload, setup))
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
    }
    [[nodiscard]] std::string name() const override { return "stage-out"; }
    void open(std::string const& path, bool writing) override
    {
        target_ = path;
        steps_ = 0;
        fast_ = new_shared_file(comm_, directory_);
        inner_->open(fast_, writing);
    }
    void move(int step, VariableBuffers& buffers) override
    {
        inner_->move(step, buffers);
        steps_ = std::max(steps_, step + 1);
    }
    void sync() override { inner_->sync(); }
    void close() override
    {
        inner_->close();
        if (rank_ == 0) (void)open_file(target_, O_RDWR | O_CREAT | O_TRUNC);
        MPI_Barrier(comm_);
        copy(steps_ * workload_.step_bytes);
        MPI_Barrier(comm_);
        if (rank_ == 0) ::unlink(fast_.c_str());
    }

private:
    /// Copies this rank's share of `total` bytes; shares are divided at page boundaries.
    void copy(std::int64_t total) const
    {
        auto const share = [&](int rank) { return rank == size_ ? total : total / size_ * rank / 4096 * 4096; };
        auto const from = open_file(fast_, O_RDONLY);
        auto const to = open_file(target_, O_WRONLY);
        std::vector<std::byte> piece(copy_bytes);
        for (auto at = share(rank_); at < share(rank_ + 1); at += copy_bytes) {
            auto const bytes = std::span(piece).first(
                static_cast<std::size_t>(std::min<std::int64_t>(copy_bytes, share(rank_ + 1) - at)));
            read_at(from, bytes, at);
            write_at(to, bytes, at);
        }
    }

    MPI_Comm comm_;
    BenchWorkload const& workload_;
    std::string directory_;
    std::unique_ptr<Method> inner_;
    int rank_ = 0, size_ = 1;
    int steps_ = 0;
    std::string target_, fast_;
};

/// A contiguous piece of the file, and where its bytes are in the log.
struct LogPiece {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t position = 0;
};

/// Sorts pieces by their position in the file, and joins those that are adjacent both there and in the log.
void sort_and_join(std::vector<LogPiece>& pieces)
{
    std::sort(pieces.begin(), pieces.end(), [](LogPiece const& a, LogPiece const& b) { return a.offset < b.offset; });
    std::size_t kept = 0;
    for (auto const& piece : pieces) {
        auto* const last = kept > 0 ? &pieces[kept - 1] : nullptr;
        if (last && last->offset + last->length == piece.offset && last->position + last->length == piece.position)
            last->length += piece.length;
        else
            pieces[kept++] = piece;
    }
    pieces.resize(kept);
}

/// Divides the pieces into rounds with a limited number of bytes and pieces.
std::vector<std::vector<LogPiece>> rounds_of(std::vector<LogPiece> const& pieces)
{
    std::vector<std::vector<LogPiece>> rounds;
    std::int64_t room = 0;
    for (auto piece : pieces)
        while (piece.length > 0) {
            if (room == 0 || rounds.back().size() == round_pieces) {
                rounds.emplace_back();
                room = round_bytes;
            }
            auto const taken = std::min(room, piece.length);
            rounds.back().push_back({piece.offset, taken, piece.position});
            piece = {piece.offset + taken, piece.length - taken, piece.position + taken};
            room -= taken;
        }
    return rounds;
}

class FlattenedLog final : public Method {
public:
    FlattenedLog(MPI_Comm comm, BenchWorkload const& workload, std::string directory)
        : comm_(comm), workload_(workload), directory_(std::move(directory))
    {
    }
    [[nodiscard]] std::string name() const override { return "flattened-log"; }
    void open(std::string const& path, bool) override
    {
        HintList const hints(false, nullptr);
        int const mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
        check_mpi(MPI_File_open(comm_, path.c_str(), mode, hints.info(), &file_), "MPI_File_open");
        log_ = new_log(directory_);
        pieces_.clear();
        end_ = 0;
    }
    void move(int step, VariableBuffers& buffers) override
    {
        auto const base = step * workload_.step_shift;
        for (std::size_t var = 0; var < buffers.size(); ++var) {
            auto position = end_;
            workload_.for_each_piece(var, [&](std::int64_t offset, std::int64_t length) {
                pieces_.push_back({base + offset, length, position});
                position += length;
            });
            append(log_, buffers[var]);
            end_ = position;
        }
    }
    void sync() override
    {
        if (::fsync(log_.get()) != 0) fail("fsync of a log");
    }
    void close() override
    {
        sort_and_join(pieces_);
        auto rounds = rounds_of(pieces_);
        rounds.resize(static_cast<std::size_t>(most(comm_, static_cast<double>(rounds.size()))));
        for (auto const& round : rounds) flush(round);
        check_mpi(MPI_File_close(&file_), "MPI_File_close");
        log_ = Descriptor();
        pieces_ = {};
    }

private:
    /// One collective call, in which a rank may have no data.
    void flush(std::vector<LogPiece> const& round)
    {
        std::vector<int> lengths;
        std::vector<MPI_Aint> offsets;
        std::size_t size = 0;
        for (auto const& piece : round) size += static_cast<std::size_t>(piece.length);
        bytes_.resize(size);
        std::size_t at = 0;
        for (auto const& piece : round) {
            lengths.push_back(static_cast<int>(piece.length));
            offsets.push_back(piece.offset);
            auto const length = static_cast<std::size_t>(piece.length);
            read_at(log_, std::span(bytes_).subspan(at, length), piece.position);
            at += length;
        }
        MPI_Datatype type = MPI_BYTE;
        if (!round.empty()) {
            MPI_Type_create_hindexed(static_cast<int>(round.size()), lengths.data(), offsets.data(), MPI_BYTE, &type);
            MPI_Type_commit(&type);
        }
        check_mpi(MPI_File_set_view(file_, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view");
        MPI_Status status;
        check_mpi(MPI_File_write_at_all(file_, 0, bytes_.data(), static_cast<int>(bytes_.size()), MPI_BYTE, &status),
                  "MPI_File_write_at_all");
        if (type != MPI_BYTE) MPI_Type_free(&type);
    }

    MPI_Comm comm_;
    BenchWorkload const& workload_;
    std::string directory_;
    MPI_File file_ = MPI_FILE_NULL;
    Descriptor log_;
    std::vector<LogPiece> pieces_;
    std::int64_t end_ = 0;
    std::vector<std::byte> bytes_;
};

class LogLimit final : public Method {
public:
    explicit LogLimit(std::string directory) : directory_(std::move(directory)) {}
    [[nodiscard]] std::string name() const override { return "log-limit"; }
    void open(std::string const&, bool) override { log_ = new_log(directory_); }
    void move(int, VariableBuffers& buffers) override
    {
        for (auto const& buffer : buffers) append(log_, buffer);
    }
    void sync() override
    {
        if (::fsync(log_.get()) != 0) fail("fsync of a log");
    }
    void close() override {}  // the file is still needed for verification
    [[nodiscard]] int own_file() const override { return log_.get(); }

private:
    std::string directory_;
    Descriptor log_;
};

}  // namespace

std::unique_ptr<Method> make_stage_out(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<StageOut>(comm, workload, setup);
}

std::unique_ptr<Method> make_flattened_log(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<FlattenedLog>(comm, workload, setup.stage.directory);
}

std::unique_ptr<Method> make_log_limit(MPI_Comm, BenchWorkload const&, MethodSetup const& setup)
{
    return std::make_unique<LogLimit>(setup.stage.directory);
}

bool is_shared(MPI_Comm comm, std::string const& directory)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    auto const path = new_shared_file(comm, directory);
    bool const shared = everywhere(comm, ::access(path.c_str(), F_OK) == 0);
    if (rank == 0) ::unlink(path.c_str());
    return shared;
}

}  // namespace bench
