#include "timing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bench {

double Spread::median() const
{
    if (values_.empty()) return 0;
    auto sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    auto const middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Spread::min() const
{
    return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end());
}

double Spread::max() const
{
    return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end());
}

double Spread::cv() const
{
    auto const n = static_cast<double>(values_.size());
    auto const mean = std::accumulate(values_.begin(), values_.end(), 0.0) / n;
    double squares = 0;
    for (auto const value : values_) squares += (value - mean) * (value - mean);
    return mean > 0 ? std::sqrt(squares / n) / mean : 0;
}

double most(MPI_Comm comm, double value)
{
    double result = 0;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, comm);
    return result;
}

bool everywhere(MPI_Comm comm, bool value)
{
    int mine = value;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, comm);
    return all != 0;
}

}  // namespace bench
