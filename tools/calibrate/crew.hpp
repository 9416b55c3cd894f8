// Crew: ranks that measure in turn while the others do not disturb them, and the line that shows their progress.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/team.hpp"

namespace calibrate {

/// Seconds of a monotonic clock.
double now();
/// The median; 0 if there are no values.
double median(std::vector<double> values);
/// Seconds of each call of `work`: at least `least` calls, then more until `seconds` are spent or `most` calls were
/// made.
std::vector<double> repeat(int least, int most, double seconds, std::function<void()> const& work);
/// At most `most` of the numbers 0 to `count`-1, evenly spread.
std::vector<int> spread(int count, int most);

class Crew {
public:
    Crew(tapioca::comm::Team const& team, bool live, bool quick) : team_(team), live_(live), quick_(quick) {}
    [[nodiscard]] tapioca::comm::Team const& team() const { return team_; }
    [[nodiscard]] bool quick() const { return quick_; }

    /// Local; rank 0 shows a line such as "links 2 of 5: n0 and n1".
    void show(std::string const& part, int n, int of, std::string const& what) const;
    /// Clears a progress line. Local.
    void done() const;
    /// Waits for all ranks. Ranks that measure poll; the others sleep, so that they do not take cores. Collective.
    void meet(bool measuring) const;
    /// The `values` of `rank` on every rank. Collective; all ranks know their number.
    [[nodiscard]] std::vector<double> told_by(int rank, std::vector<double> values) const;
    /// The most of all ranks' values. Collective.
    [[nodiscard]] double most(double value) const;

private:
    tapioca::comm::Team const& team_;
    bool live_, quick_;
};

}  // namespace calibrate
