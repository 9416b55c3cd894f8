#include "method.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "mpi_calls.hpp"
#include "stage_method.hpp"
#include "timing.hpp"

namespace bench {

namespace {

class Tapioca final : public Method {
public:
    Tapioca(MPI_Comm comm, BenchWorkload const& workload, std::string name, tapioca::Options options,
            SettingList const& settings)
        : comm_(comm),
          workload_(workload),
          name_(std::move(name)),
          options_(std::move(options)),
          hints_(true, nullptr, settings)
    {
    }
    [[nodiscard]] std::string name() const override { return name_; }

    void open(std::string const& path, bool writing) override
    {
        writing_ = writing;
        auto const mode = writing ? tapioca::Mode::create : tapioca::Mode::read;
        file_.emplace(tapioca::File::open(comm_, path, mode, options_, hints_.info()));
        auto const start = MPI_Wtime();
        auto const pattern = workload_.pattern();
        step_.emplace(file_->declare(pattern));
        declaration_.seconds = MPI_Wtime() - start;
        declaration_.bookkeeping_bytes = pattern.bookkeeping_bytes();
    }
    void move(int step, VariableBuffers& buffers) override
    {
        step_->rebase(step * workload_.step_shift);
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
    [[nodiscard]] Declaration const* declaration() const override
    {
        return options_.stage || options_.subfile ? nullptr : &declaration_;
    }

private:
    MPI_Comm comm_;
    BenchWorkload const& workload_;
    std::string name_;
    tapioca::Options options_;
    HintList hints_;
    bool writing_ = false;
    std::optional<tapioca::File> file_;
    std::optional<tapioca::Step> step_;
    Declaration declaration_;
};

/// MPI-IO: one call per variable; blocks go through a file view, whose pointer advances from step to step. Either
/// alone, or `through` the drop-in library, there optionally with a log on a `stage`.
class MpiIo final : public Method {
public:
    MpiIo(MPI_Comm comm, BenchWorkload const& workload, bool collective, bool through, StageSetup const* stage,
          SettingList const& settings)
        : comm_(comm),
          workload_(workload),
          collective_(collective),
          through_(through),
          stage_(stage),
          hints_(through, stage, settings)
    {
        for (auto const& variable : workload.variables)
            if (variable.bytes() > INT_MAX)
                throw std::runtime_error(
                    "MPI-IO methods take at most 2 GiB per rank and variable: choose smaller sizes");
    }
    [[nodiscard]] std::string name() const override
    {
        return std::string(collective_ ? "collective" : "independent") + (through_ ? dropin_suffix : "") +
               (stage_ ? staged_suffix : "");
    }

    void open(std::string const& path, bool writing) override
    {
        writing_ = writing;
        int const mode = writing ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
        check_mpi(MPI_File_open(comm_, path.c_str(), mode, hints_.info(), &file_), "MPI_File_open");
        if (!with_view()) return;
        auto const& variable = workload_.variables[0];
        bool const listed = !workload_.extents.empty();
        MPI_Datatype tile = MPI_DATATYPE_NULL;
        if (listed) {
            std::vector<MPI_Aint> offsets;
            for (auto const& extent : workload_.extents) offsets.push_back(extent.offset);
            MPI_Type_create_hindexed_block(static_cast<int>(offsets.size()), static_cast<int>(variable.length),
                                           offsets.data(), MPI_BYTE, &tile);
        } else {
            MPI_Type_contiguous(static_cast<int>(variable.length), MPI_BYTE, &tile);
        }
        MPI_Type_create_resized(tile, 0, listed ? workload_.step_bytes : variable.stride, &filetype_);
        MPI_Type_commit(&filetype_);
        MPI_Type_free(&tile);
        check_mpi(MPI_File_set_view(file_, listed ? 0 : variable.offset, MPI_BYTE, filetype_, "native", MPI_INFO_NULL),
                  "MPI_File_set_view");
    }
    void move(int step, VariableBuffers& buffers) override
    {
        for (std::size_t var = 0; var < buffers.size(); ++var) {
            auto const& variable = workload_.variables[var];
            auto const offset = step * workload_.step_shift + variable.offset;
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
    BenchWorkload const& workload_;
    bool collective_;
    bool through_;
    StageSetup const* stage_;
    HintList hints_;
    bool writing_ = false;
    MPI_File file_ = MPI_FILE_NULL;
    MPI_Datatype filetype_ = MPI_DATATYPE_NULL;
};

/// All ranks write or read the same number of bytes, each in one contiguous piece, with plain system calls.
class Limit final : public Method {
public:
    Limit(MPI_Comm comm, BenchWorkload const& workload, std::int64_t call)
        : comm_(comm), workload_(workload), call_(call)
    {
    }
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
    void move(int step, VariableBuffers& buffers) override
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
    BenchWorkload const& workload_;
    std::int64_t call_;
    bool writing_ = false;
    int fd_ = -1;
};

/// TAPIOCA with a log on the stage, one per process or one per node.
tapioca::Options staged(StageSetup const& stage, tapioca::StageMapping mapping)
{
    tapioca::Options options;
    options.stage = stage.place;
    options.stage_mapping = mapping;
    options.stage_drain = stage.drain;
    return options;
}

/// What a method is used for.
enum class For {
    steps,          ///< can be measured step by step
    subfiles,       ///< the previous method, with subfiles
    whole_files,    ///< writes to the stage first
    dropin,         ///< the previous method, through the drop-in library
    dropin_staged,  ///< the previous method, through the drop-in library with a log on the stage, for whole files
};

/// A row of the table. To add a method, write its class and its row.
struct MethodRow {
    char const* name;
    char const* label;  ///< shown to users
    For what;
    std::unique_ptr<Method> (*make)(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup);
};

template <bool collective, bool through, bool logged = false>
std::unique_ptr<Method> make_mpi_io(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<MpiIo>(comm, workload, collective, through, logged ? &setup.stage : nullptr,
                                   setup.settings);
}

std::unique_ptr<Method> make_tapioca(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<Tapioca>(comm, workload, "tapioca", tapioca::Options(), setup.settings);
}

std::unique_ptr<Method> make_subfiled(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    tapioca::Options options;
    options.subfile = setup.subfile;
    return std::make_unique<Tapioca>(comm, workload, subfile_method, options, setup.settings);
}

std::unique_ptr<Method> make_staged(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<Tapioca>(comm, workload, "staged", staged(setup.stage, tapioca::StageMapping::process),
                                     setup.settings);
}

std::unique_ptr<Method> make_staged_node(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<Tapioca>(comm, workload, "staged-node", staged(setup.stage, tapioca::StageMapping::node),
                                     setup.settings);
}

std::unique_ptr<Method> make_limit(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup)
{
    return std::make_unique<Limit>(comm, workload, setup.limit_call);
}

constexpr MethodRow rows[] = {
    {"tapioca", "TAPIOCA", For::steps, make_tapioca},
    {subfile_method, "TAPIOCA subfiles", For::subfiles, make_subfiled},
    {"collective", "MPI-IO collective", For::steps, make_mpi_io<true, false>},
    {"collective-dropin", "  through TAPIOCA", For::dropin, make_mpi_io<true, true>},
    {"collective-dropin-staged", "  through, staged", For::dropin_staged, make_mpi_io<true, true, true>},
    {"independent", "MPI-IO independent", For::steps, make_mpi_io<false, false>},
    {"independent-dropin", "  through TAPIOCA", For::dropin, make_mpi_io<false, true>},
    {"limit", "limit (pwrite/pread)", For::steps, make_limit},
    {"staged", "TAPIOCA staged", For::whole_files, make_staged},
    {"staged-node", "TAPIOCA staged-node", For::whole_files, make_staged_node},
    {"stage-out", "stage-out", For::whole_files, make_stage_out},
    {"flattened-log", "flattened-log", For::whole_files, make_flattened_log},
    {"log-limit", "log-limit", For::whole_files, make_log_limit},
};

std::vector<std::string> names_for(For what)
{
    std::vector<std::string> names;
    for (auto const& row : rows)
        if (row.what == what) names.emplace_back(row.name);
    return names;
}

MethodRow const& row_of(std::string const& name)
{
    auto const* const row =
        std::find_if(std::begin(rows), std::end(rows), [&](MethodRow const& one) { return one.name == name; });
    if (row == std::end(rows)) throw std::runtime_error("unknown method " + name);
    return *row;
}

}  // namespace

std::vector<std::string> const& method_names()
{
    static std::vector<std::string> const names = names_for(For::steps);
    return names;
}

std::vector<std::string> const& stage_method_names()
{
    static std::vector<std::string> const names = names_for(For::whole_files);
    return names;
}

void remove_file(std::string const& path)
{
    std::error_code error;
    std::filesystem::remove(path, error);
    std::filesystem::remove_all(path + ".subfiles", error);
}

std::string method_label(std::string const& name)
{
    return row_of(name).label;
}

std::vector<std::string> with_dropin(std::vector<std::string> const& methods, bool staged)
{
    std::vector<std::string> all;
    for (auto const& method : methods) {
        all.push_back(method);
        for (auto const* row = &row_of(method) + 1; row != std::end(rows); ++row) {
            if (row->what != For::dropin && row->what != For::dropin_staged) break;
            if (row->what == For::dropin || staged) all.emplace_back(row->name);
        }
    }
    return all;
}

bool dropin_is_loaded(std::string const& directory)
{
    auto const path = fmt::format("{}/tapioca-bench.probe.{}", directory, ::getpid());
    MPI_File file = MPI_FILE_NULL;
    check_mpi(MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                            MPI_INFO_NULL, &file),
              "MPI_File_open");
    MPI_Info info = MPI_INFO_NULL;
    MPI_File_get_info(file, &info);
    char value[16] = {};
    int found = 0;
    MPI_Info_get(info, "tapioca", sizeof value - 1, value, &found);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    return found != 0;
}

double open_and_close(MPI_Comm comm, std::string const& path, bool through)
{
    HintList const hints(through);
    int const mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    return timed(comm, [&] {
        MPI_File file = MPI_FILE_NULL;
        check_mpi(MPI_File_open(comm, path.c_str(), mode, hints.info(), &file), "MPI_File_open");
        check_mpi(MPI_File_close(&file), "MPI_File_close");
    });
}

std::unique_ptr<Method> make_method(std::string const& name, MPI_Comm comm, BenchWorkload const& workload,
                                    MethodSetup const& setup)
{
    return row_of(name).make(comm, workload, setup);
}

}  // namespace bench
