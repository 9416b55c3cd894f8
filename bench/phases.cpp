#include "phases.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace bench {

namespace {

class PhasesBench {
public:
    PhasesBench(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup, double compute_s)
        : comm_(comm),
          workload_(workload),
          setup_(setup),
          compute_s_(compute_s),
          scattered_(static_cast<std::size_t>(workload.steps)),
          contiguous_(scattered_.size())
    {
        MPI_Comm_rank(comm, &rank_);
        for (auto& buffers : scattered_)
            for (auto const& variable : workload.variables)
                buffers.emplace_back(static_cast<std::size_t>(variable.bytes()));
    }

    PhasesOutcome run()
    {
        PhasesOutcome outcome{workload_, 1, compute_s_, {}};
        MPI_Comm_size(comm_, &outcome.ranks);
        for (auto const& name : setup_.methods) outcome.cells.emplace_back().method = name;
        for (int repetition = 0; repetition < setup_.repetitions; ++repetition)
            for (std::size_t i = 0; i < outcome.cells.size(); ++i) {
                auto& cell = outcome.cells[i];
                if (rank_ == 0 && setup_.progress) setup_.progress(cell.method, repetition);
                auto const method = make_method(cell.method, comm_, workload_, setup_.method);
                write(*method, static_cast<std::uint64_t>(repetition) * 16 + i + 1, cell);
            }
        return outcome;
    }

private:
    /// Writes one file, from open to close. Its bytes are generated before, so that only writing is timed.
    void write(Method& method, std::uint64_t seed, PhasesCell& cell)
    {
        auto const path = fmt::format("{}/tapioca-bench.{}.{}.dat", setup_.directory, workload_.name, files_++);
        for (int step = 0; step < workload_.steps; ++step) fill(method, step, seed);
        auto const open = timed(comm_, [&] { method.open(path, true); });
        auto const write = move(method);
        cell.in_file = method.own_file() < 0;
        auto const flush = timed(comm_, [&] {
            method.close();
            if (setup_.fsync && cell.in_file) sync(path);
        });
        cell.seconds.open.push_back(open);
        cell.seconds.write.push_back(write);
        cell.seconds.flush.push_back(flush);
        cell.seconds.total.push_back(open + write + flush);
        bool const verified = cell.in_file ? file_matches(comm_, path, workload_.file_bytes(), seed)
                                           : everywhere(comm_, own_file_matches(method.own_file()));
        cell.verified = cell.verified && verified;
        if (rank_ == 0 && cell.in_file) ::unlink(path.c_str());
        MPI_Barrier(comm_);
    }

    VariableBuffers& buffers(Method const& method, int step)
    {
        return (method.contiguous() ? contiguous_ : scattered_)[static_cast<std::size_t>(step)];
    }

    void fill(Method const& method, int step, std::uint64_t seed)
    {
        auto& to = buffers(method, step);
        if (method.contiguous()) {
            if (to.empty()) to.emplace_back(static_cast<std::size_t>(workload_.rank_bytes));
            bench::fill(to[0], step * workload_.step_bytes + workload_.rank_offset, seed);
            return;
        }
        for (std::size_t var = 0; var < to.size(); ++var)
            ExpectedData(workload_, step * workload_.step_shift, seed).fill(var, to[var]);
    }

    /// Moves all steps. Returns the seconds spent in them on the slowest rank.
    double move(Method& method)
    {
        if (compute_s_ <= 0)
            return timed(comm_, [&] {
                for (int step = 0; step < workload_.steps; ++step) method.move(step, buffers(method, step));
            });
        double seconds = 0;
        for (int step = 0; step < workload_.steps; ++step) {
            if (step > 0) std::this_thread::sleep_for(std::chrono::duration<double>(compute_s_));
            MPI_Barrier(comm_);  // so that no rank is charged for another one that slept longer
            auto const start = MPI_Wtime();
            method.move(step, buffers(method, step));
            seconds += MPI_Wtime() - start;
        }
        return most(comm_, seconds);
    }

    /// Called on every rank, because each node of several has bytes of its own to send.
    static void sync(std::string const& path)
    {
        int const fd = ::open(path.c_str(), O_RDWR);
        bool const good = fd >= 0 && ::fsync(fd) == 0;
        auto const why = errno;
        if (fd >= 0) ::close(fd);
        if (!good) throw std::runtime_error(fmt::format("fsync of {}: {}", path, std::strerror(why)));
    }

    /// Whether this rank's own file contains its buffers, one after the other.
    bool own_file_matches(int fd)
    {
        std::int64_t at = 0;
        std::vector<std::byte> found;
        for (auto const& step : scattered_)
            for (auto const& buffer : step) {
                found.resize(buffer.size());
                auto const got = ::pread(fd, found.data(), found.size(), at);
                if (got != static_cast<ssize_t>(buffer.size()) || found != buffer) return false;
                at += got;
            }
        return true;
    }

    MPI_Comm comm_;
    BenchWorkload const& workload_;
    Setup const& setup_;
    double compute_s_;
    std::vector<VariableBuffers> scattered_;   ///< for every step
    std::vector<VariableBuffers> contiguous_;  ///< the same for methods that need one piece
    int rank_ = 0;
    int files_ = 0;
};

}  // namespace

PhasesOutcome measure_phases(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup, double compute_s)
{
    return PhasesBench(comm, workload, setup, compute_s).run();
}

}  // namespace bench
