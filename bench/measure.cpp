#include "measure.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "timing.hpp"

namespace bench {

namespace {

/// The plan of a single node has no such object.
NetworkTotals network_of(nlohmann::json const& plan, char const* direction)
{
    if (!plan.is_object()) return {};
    auto const part = plan.value(direction, nlohmann::json::object());
    if (!part.is_object() || !part.contains("network")) return {1, 0, 0, 0, 0};
    auto const& network = part["network"];
    return {network.value("nodes", 1), network.value("crossing_bytes", std::int64_t{0}),
            network.value("most_in_bytes", std::int64_t{0}), network.value("most_out_bytes", std::int64_t{0}), 0};
}

/// The bytes that must cross between switches: of each partition, all except those of the switch with the most.
/// Collective.
std::int64_t must_cross(MPI_Comm comm, BenchWorkload const& workload, nlohmann::json const& plan, char const* direction,
                        int switches)
{
    auto const partitions = plan[direction]["partitions"];
    if (switches < 2 || partitions.empty() || !workload.extents.empty()) return 0;
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    auto const count = partitions.size();
    std::vector<std::int64_t> bytes(count * static_cast<std::size_t>(switches));
    auto* const mine = bytes.data() + static_cast<std::size_t>(std::int64_t{rank} * switches / size) * count;
    for (std::size_t p = 0; p < count; ++p) {
        auto const begin = partitions[p]["begin"].get<std::int64_t>();
        auto const end = partitions[p]["end"].get<std::int64_t>();
        for (auto const& [offset, length, stride, pieces] : workload.variables)
            for (std::int64_t i = 0; i < pieces; ++i) {
                auto const at = offset + i * stride;
                mine[p] += std::max<std::int64_t>(0, std::min(at + length, end) - std::max(at, begin));
            }
    }
    MPI_Allreduce(MPI_IN_PLACE, bytes.data(), static_cast<int>(bytes.size()), MPI_INT64_T, MPI_SUM, comm);
    std::int64_t result = 0;
    for (std::size_t p = 0; p < count; ++p) {
        std::int64_t all = 0;
        std::int64_t largest = 0;
        for (auto at = p; at < bytes.size(); at += count) {
            all += bytes[at];
            largest = std::max(largest, bytes[at]);
        }
        result += all - largest;
    }
    return result;
}

class Bench {
public:
    Bench(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup)
        : comm_(comm), workload_(workload), setup_(setup)
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        for (auto const& variable : workload.variables)
            scattered_.emplace_back(static_cast<std::size_t>(variable.bytes()));
        contiguous_.emplace_back(static_cast<std::size_t>(workload.rank_bytes));
    }

    BenchOutcome run()
    {
        for (int repetition = 0; repetition < setup_.repetitions; ++repetition)
            for (auto const& name : setup_.methods) {
                if (rank_ == 0 && setup_.progress) setup_.progress(name, repetition);
                auto const method = make_method(name, comm_, workload_, setup_.method);
                next_path();
                auto const seed = static_cast<std::uint64_t>(repetition) * 16 + cells_.size() + 1;
                write(*method, seed);
                if (setup_.read) read(*method, seed);
                if (rank_ == 0) remove_file(path_);
                MPI_Barrier(comm_);
            }
        BenchOutcome outcome;
        if (setup_.dropin) outcome.unused = open_unused();
        for (char const* op : {"write", "read"})
            for (char const* phase : {"cold", "steady"})
                for (auto const& name : setup_.methods)
                    if (auto const at = cells_.find(name + op + phase); at != cells_.end())
                        outcome.cells.push_back(at->second);
        auto const& cells = outcome.cells;
        if (std::any_of(cells.begin(), cells.end(), [](Cell const& cell) { return cell.declared; })) {
            declare_.declare_seconds = declare_seconds_.median();
            declare_.step_seconds = step_seconds_.median();
            outcome.declare = declare_;
            next_path();
            explain(outcome);
        }
        for (auto& cell : outcome.cells) {
            auto const& network = cell.op == "write" ? outcome.write : outcome.read;
            if (!cell.declared) continue;
            if (setup_.switches > 1) cell.must_cross_bytes = network.must_cross_bytes;
            if (setup_.link_bytes_per_s <= 0) continue;
            cell.crossing_bytes = network.crossing_bytes;
            cell.link_mb_per_s = network.allowed_mb_per_s(workload_.step_bytes, setup_.link_bytes_per_s);
        }
        return outcome;
    }

private:
    /// Every file gets a new name, because other hosts of a distributed file system may remember a deleted one.
    void next_path() { path_ = fmt::format("{}/tapioca-bench.{}.{}.dat", setup_.directory, workload_.name, files_++); }

    VariableBuffers& buffers(Method const& method) { return method.contiguous() ? contiguous_ : scattered_; }

    void fill(Method const& method, int step, std::uint64_t seed)
    {
        auto const base = step * workload_.step_bytes;
        if (method.contiguous())
            bench::fill(contiguous_[0], base + workload_.rank_offset, seed);
        else
            for (std::size_t var = 0; var < scattered_.size(); ++var)
                ExpectedData(workload_, base, seed).fill(var, scattered_[var]);
    }

    bool buffers_match(Method const& method, int step, std::uint64_t seed)
    {
        auto const base = step * workload_.step_bytes;
        if (method.contiguous()) return matches(contiguous_[0], base + workload_.rank_offset, seed);
        bool same = true;
        for (std::size_t var = 0; var < scattered_.size(); ++var)
            same = ExpectedData(workload_, base, seed).matches(var, scattered_[var]) && same;
        return same;
    }

    /// Writes two steps: the first is cold, the second steady.
    void write(Method& method, std::uint64_t seed)
    {
        fill(method, 0, seed);
        double cold = timed(comm_, [&] {
            method.open(path_, true);
            method.move(0, buffers(method));
            if (setup_.fsync) method.sync();
        });
        fill(method, 1, seed);
        double const steady = timed(comm_, [&] {
            method.move(1, buffers(method));
            if (setup_.fsync) method.sync();
        });
        cold += timed(comm_, [&] { method.close(); });
        bool const plain = method.name() != subfile_method;
        bool const verified = (plain ? file_matches : set_matches)(comm_, path_, workload_.file_bytes(), seed);
        record(method, "write", "cold", cold, verified);
        record(method, "write", "steady", steady, verified);
        if (auto const* const declaration = method.declaration()) {
            declare_seconds_.push_back(most(comm_, declaration->seconds));
            step_seconds_.push_back(steady);
            declare_.bookkeeping_bytes =
                static_cast<std::uint64_t>(most(comm_, static_cast<double>(declaration->bookkeeping_bytes)));
            declare_.pieces = 0;
            for (auto const& variable : workload_.variables) declare_.pieces += variable.count;
        }
    }

    void read(Method& method, std::uint64_t seed)
    {
        clear(method);
        double cold = timed(comm_, [&] {
            method.open(path_, false);
            method.move(0, buffers(method));
        });
        bool verified = buffers_match(method, 0, seed);
        clear(method);
        double const steady = timed(comm_, [&] { method.move(1, buffers(method)); });
        verified = buffers_match(method, 1, seed) && verified;
        cold += timed(comm_, [&] { method.close(); });
        verified = everywhere(comm_, verified);
        record(method, "read", "cold", cold, verified);
        record(method, "read", "steady", steady, verified);
    }

    Unused open_unused()
    {
        constexpr int times = 20;  // a single one is short, and takes from one to ten milliseconds in some MPIs
        Unused unused;
        next_path();
        (void)open_and_close(comm_, path_, false);  // the file exists from now on
        for (int i = 0; i < setup_.repetitions * times; ++i)
            for (bool const through : {i % 2 == 0, i % 2 != 0})
                (through ? unused.through : unused.alone).push_back(open_and_close(comm_, path_, through));
        if (rank_ == 0) ::unlink(path_.c_str());
        return unused;
    }

    void clear(Method const& method)
    {
        for (auto& buffer : buffers(method)) std::fill(buffer.begin(), buffer.end(), std::byte{0xA5});
    }

    void record(Method const& method, char const* op, char const* phase, double seconds, bool verified)
    {
        auto& cell = cells_[method.name() + op + phase];
        cell.workload = workload_.name;
        cell.layout = workload_.layout;
        cell.op = op;
        cell.phase = phase;
        cell.method = method.name();
        cell.bytes_per_rank = workload_.step_bytes / size_;
        cell.block_bytes = workload_.block_bytes;
        cell.ranks = size_;
        cell.mb_per_s.push_back(static_cast<double>(workload_.step_bytes) / 1e6 / seconds);
        cell.verified = cell.verified && verified;
        cell.declared = method.declaration() != nullptr;
    }

    /// Makes one more write and read with a report, untimed, to see where TAPIOCA spends its time.
    void explain(BenchOutcome& outcome)
    {
        auto& result = outcome.breakdown;
        // The environment takes precedence over options.
        auto const* const asked = std::getenv("TAPIOCA_REPORT");
        auto const report = asked ? std::string(asked) : path_ + ".report.json";
        tapioca::Options options;
        options.report = report;
        for (auto const mode : {tapioca::Mode::create, tapioca::Mode::read}) {
            if (mode == tapioca::Mode::read && !setup_.read) continue;
            auto file = tapioca::File::open(comm_, path_, mode, options);
            auto step = file.declare(workload_.pattern());
            result.plan = step.plan().explain();
            auto const plan = nlohmann::json::parse(step.plan().json(), nullptr, false);
            auto const* const direction = mode == tapioca::Mode::create ? "write" : "read";
            auto& network = mode == tapioca::Mode::create ? outcome.write : outcome.read;
            network = network_of(plan, direction);
            network.must_cross_bytes = must_cross(comm_, workload_, plan, direction, setup_.switches);
            for (std::size_t var = 0; var < scattered_.size(); ++var) {
                if (mode == tapioca::Mode::create)
                    step.write(var, std::span<std::byte const>(scattered_[var]));
                else
                    step.read(var, std::span<std::byte>(scattered_[var]));
            }
            step.finish();
            file.close();
        }
        if (rank_ != 0) return;
        std::ifstream in(report);
        auto const json = nlohmann::json::parse(in, nullptr, false);
        in.close();
        if (!asked) std::remove(report.c_str());
        ::unlink(path_.c_str());
        std::size_t const ours = setup_.read ? 2 : 1;
        if (!json.is_object() || json["files"].size() < ours) return;
        auto const first = json["files"].size() - ours;
        auto const direction = [](nlohmann::json const& part) -> Breakdown::DirectionTimes {
            auto const& s = part["seconds"];
            return {s["copying"]["mean"], s["waiting"]["mean"], s["draining"]["max"]};
        };
        result.planning = json["files"][first]["planning_seconds"]["max"];
        result.write = direction(json["files"][first]["write"]);
        if (setup_.read) result.read = direction(json["files"][first + 1]["read"]);
    }

    MPI_Comm comm_;
    BenchWorkload const& workload_;
    Setup const& setup_;
    int rank_ = 0, size_ = 1;
    int files_ = 0;
    std::string path_;
    VariableBuffers scattered_;
    VariableBuffers contiguous_;
    std::map<std::string, Cell> cells_;
    Spread declare_seconds_;
    Spread step_seconds_;
    DeclareCost declare_;
};

}  // namespace

double NetworkTotals::allowed_mb_per_s(std::int64_t step_bytes, double link_bytes_per_s) const
{
    auto const busiest = static_cast<double>(std::max(most_in_bytes, most_out_bytes));
    if (busiest <= 0 || link_bytes_per_s <= 0) return 0;
    return static_cast<double>(step_bytes) / 1e6 / (busiest / link_bytes_per_s);
}

namespace {

/// This rank's share of `total` bytes to verify: the first and one past the last.
std::pair<std::int64_t, std::int64_t> slice_of(MPI_Comm comm, std::int64_t total)
{
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return {total / size * rank, rank + 1 == size ? total : total / size * (rank + 1)};
}

}  // namespace

bool file_matches(MPI_Comm comm, std::string const& path, std::int64_t total, std::uint64_t seed)
{
    auto const [begin, end] = slice_of(comm, total);
    int const fd = ::open(path.c_str(), O_RDONLY);
    bool same = fd >= 0;
    std::vector<std::byte> piece(std::size_t{1} << 20);
    // Does not use the size, which a distributed file system may have cached: a read beyond the end asks again.
    if (same && begin == 0) same = ::pread(fd, piece.data(), 1, total) == 0;
    for (auto at = begin; same && at < end;) {
        auto const wanted = std::min<std::int64_t>(end - at, static_cast<std::int64_t>(piece.size()));
        auto const got = ::pread(fd, piece.data(), static_cast<std::size_t>(wanted), at);
        same = got > 0 && matches(std::span(piece).first(static_cast<std::size_t>(got)), at, seed);
        at += got;
    }
    if (fd >= 0) ::close(fd);
    return everywhere(comm, same);
}

bool set_matches(MPI_Comm comm, std::string const& path, std::int64_t total, std::uint64_t seed)
{
    auto const [begin, end] = slice_of(comm, total);
    auto file = tapioca::File::open(MPI_COMM_SELF, path, tapioca::Mode::read);
    tapioca::Pattern pattern;
    auto const slice = pattern.add({{begin, end - begin}});
    std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin));
    bool const whole = file.size() == static_cast<std::uint64_t>(total);
    auto step = file.declare(pattern);
    step.read(slice, std::span(bytes));
    step.finish();
    file.close();
    return everywhere(comm, whole && matches(bytes, begin, seed));
}

BenchOutcome measure(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup)
{
    return Bench(comm, workload, setup).run();
}

}  // namespace bench
