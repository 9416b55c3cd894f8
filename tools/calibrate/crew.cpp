#include "crew.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/core.h>

namespace calibrate {

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values)
{
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    auto const middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> repeat(int least, int most, double seconds, std::function<void()> const& work)
{
    std::vector<double> times;
    auto const begin = now();
    for (auto before = begin; static_cast<int>(times.size()) < most;) {
        work();
        auto const after = now();
        times.push_back(after - before);
        before = after;
        if (static_cast<int>(times.size()) >= least && after - begin >= seconds) break;
    }
    return times;
}

std::vector<int> spread(int count, int most)
{
    std::vector<int> chosen;
    auto const n = std::min(count, most);
    chosen.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) chosen.push_back(static_cast<int>(static_cast<std::int64_t>(i) * count / n));
    return chosen;
}

void Crew::show(std::string const& part, int n, int of, std::string const& what) const
{
    if (team_.rank() != 0) return;
    fmt::print(stderr, "{}{} {} of {}: {}{}", live_ ? "\r\033[K" : "", part, n, of, what, live_ ? "" : "\n");
    std::fflush(stderr);
}

void Crew::done() const
{
    if (team_.rank() == 0 && live_) fmt::print(stderr, "\r\033[K");
}

void Crew::meet(bool measuring) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(team_.all(), &request);
    for (int arrived = 0;;) {
        MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
        if (arrived) return;
        if (measuring)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
}

std::vector<double> Crew::told_by(int rank, std::vector<double> values) const
{
    MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, rank, team_.all());
    return values;
}

double Crew::most(double value) const
{
    double result = value;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, team_.all());
    return result;
}

}  // namespace calibrate
