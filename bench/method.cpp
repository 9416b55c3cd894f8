#include "method.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace bench {

namespace {

class Tapioca final : public Method {
public:
    Tapioca(MPI_Comm comm, Workload const& workload) : comm_(comm), workload_(workload) {}
    [[nodiscard]] std::string name() const override { return "tapioca"; }

    void open(std::string const& path, bool writing) override
    {
        writing_ = writing;
        file_.emplace(tapioca::File::open(comm_, path, writing ? tapioca::Mode::create : tapioca::Mode::read));
        auto const start = MPI_Wtime();
        auto const pattern = workload_.pattern();
        step_.emplace(file_->declare(pattern));
        declaration_.seconds = MPI_Wtime() - start;
        declaration_.bookkeeping_bytes = pattern.bookkeeping_bytes();
    }
    void move(int step, Buffers& buffers) override
    {
        step_->rebase(step * workload_.step_bytes);
        for (std::size_t var = 0; var < buffers.size(); ++var) {
            if (writing_)
                step_->write(var, std::span<std::byte const>(buffers[var]));
            else
                step_->read(var, std::span<std::byte>(buffers[var]));
        }
        step_->finish();
    }
    void sync() override { file_->sync(); }
    void close() override
    {
        step_.reset();
        file_->close();
        file_.reset();
    }
    [[nodiscard]] Declaration const& declaration() const { return declaration_; }

private:
    MPI_Comm comm_;
    Workload const& workload_;
    bool writing_ = false;
    std::optional<tapioca::File> file_;
    std::optional<tapioca::Step> step_;
    Declaration declaration_;
};

void check_mpi(int code, char const* call)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw std::runtime_error(fmt::format("{}: {}", call, text));
}

/// MPI-IO: one call per variable; blocks through a file view, whose pointer moves on from step to step.
class MpiIo final : public Method {
public:
    MpiIo(MPI_Comm comm, Workload const& workload, bool collective)
        : comm_(comm), workload_(workload), collective_(collective)
    {
        for (auto const& variable : workload.variables)
            if (variable.bytes() > INT_MAX)
                throw std::runtime_error(
                    "MPI-IO methods take at most 2 GiB per rank and variable: choose smaller sizes");
    }
    [[nodiscard]] std::string name() const override { return collective_ ? "collective" : "independent"; }

    void open(std::string const& path, bool writing) override
    {
        writing_ = writing;
        int const mode = writing ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
        check_mpi(MPI_File_open(comm_, path.c_str(), mode, MPI_INFO_NULL, &file_), "MPI_File_open");
        if (!with_view()) return;
        auto const& variable = workload_.variables[0];
        MPI_Datatype block = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(static_cast<int>(variable.length), MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, variable.stride, &filetype_);
        MPI_Type_commit(&filetype_);
        MPI_Type_free(&block);
        check_mpi(MPI_File_set_view(file_, variable.offset, MPI_BYTE, filetype_, "native", MPI_INFO_NULL),
                  "MPI_File_set_view");
    }
    void move(int step, Buffers& buffers) override
    {
        for (std::size_t var = 0; var < buffers.size(); ++var) {
            auto const& variable = workload_.variables[var];
            auto const offset = step * workload_.step_bytes + variable.offset;
            void* const data = buffers[var].data();
            auto const count = static_cast<int>(variable.bytes());
            MPI_Status status;
            auto const call = [&](auto function, auto... where) {
                check_mpi(function(file_, where..., data, count, MPI_BYTE, &status), "MPI-IO");
            };
            if (with_view())
                writing_ ? (collective_ ? call(MPI_File_write_all) : call(MPI_File_write))
                         : (collective_ ? call(MPI_File_read_all) : call(MPI_File_read));
            else
                writing_ ? (collective_ ? call(MPI_File_write_at_all, offset) : call(MPI_File_write_at, offset))
                         : (collective_ ? call(MPI_File_read_at_all, offset) : call(MPI_File_read_at, offset));
        }
    }
    void sync() override { check_mpi(MPI_File_sync(file_), "MPI_File_sync"); }
    void close() override
    {
        check_mpi(MPI_File_close(&file_), "MPI_File_close");
        if (filetype_ != MPI_DATATYPE_NULL) MPI_Type_free(&filetype_);
    }

private:
    [[nodiscard]] bool with_view() const { return workload_.variables[0].count > 1; }

    MPI_Comm comm_;
    Workload const& workload_;
    bool collective_;
    bool writing_ = false;
    MPI_File file_ = MPI_FILE_NULL;
    MPI_Datatype filetype_ = MPI_DATATYPE_NULL;
};

/// All ranks write or read the same number of bytes, each in one contiguous piece, with plain system calls.
class Limit final : public Method {
public:
    Limit(MPI_Comm comm, Workload const& workload, std::int64_t call) : comm_(comm), workload_(workload), call_(call) {}
    [[nodiscard]] std::string name() const override { return "limit"; }
    [[nodiscard]] bool contiguous() const override { return true; }

    void open(std::string const& path, bool writing) override
    {
        writing_ = writing;
        int rank = 0;
        MPI_Comm_rank(comm_, &rank);
        if (rank == 0 && writing) open_file(path, O_RDWR | O_CREAT | O_TRUNC);
        MPI_Barrier(comm_);
        if (fd_ < 0) open_file(path, writing ? O_RDWR : O_RDONLY);
    }
    void move(int step, Buffers& buffers) override
    {
        auto& bytes = buffers[0];
        auto const offset = step * workload_.step_bytes + workload_.rank_offset;
        for (std::size_t done = 0; done < bytes.size();) {
            auto const at = offset + static_cast<std::int64_t>(done);
            auto const left = bytes.size() - done;
            auto const wanted = call_ > 0 ? std::min(left, static_cast<std::size_t>(call_)) : left;
            auto const moved = writing_ ? ::pwrite(fd_, bytes.data() + done, wanted, at)
                                        : ::pread(fd_, bytes.data() + done, wanted, at);
            if (moved <= 0) throw std::runtime_error(fmt::format("limit: {}", std::strerror(errno)));
            done += static_cast<std::size_t>(moved);
        }
    }
    void sync() override
    {
        if (::fsync(fd_) != 0) throw std::runtime_error(fmt::format("fsync: {}", std::strerror(errno)));
    }
    void close() override
    {
        int const result = ::close(fd_);  // some distributed file systems write, and fail, only here
        fd_ = -1;
        if (result != 0) throw std::runtime_error(fmt::format("close: {}", std::strerror(errno)));
    }

private:
    void open_file(std::string const& path, int flags)
    {
        fd_ = ::open(path.c_str(), flags, 0666);
        if (fd_ < 0) throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    }

    MPI_Comm comm_;
    Workload const& workload_;
    std::int64_t call_;
    bool writing_ = false;
    int fd_ = -1;
};

}  // namespace

std::vector<std::string> const& method_names()
{
    static std::vector<std::string> const names = {"tapioca", "collective", "independent", "limit"};
    return names;
}

std::unique_ptr<Method> make_method(std::string const& name, MPI_Comm comm, Workload const& workload,
                                    std::int64_t limit_call)
{
    if (name == "tapioca") return std::make_unique<Tapioca>(comm, workload);
    if (name == "collective") return std::make_unique<MpiIo>(comm, workload, true);
    if (name == "independent") return std::make_unique<MpiIo>(comm, workload, false);
    if (name == "limit") return std::make_unique<Limit>(comm, workload, limit_call);
    throw std::runtime_error("unknown method " + name);
}

Declaration const* declaration_of(Method const& method)
{
    auto const* const tapioca = dynamic_cast<Tapioca const*>(&method);
    return tapioca ? &tapioca->declaration() : nullptr;
}

}  // namespace bench
