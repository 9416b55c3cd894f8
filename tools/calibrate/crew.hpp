// Crew: ranks that measure in turn while the others stay out of their way, and the line that tells how far they are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/team.hpp"

namespace calibrate {

/// Seconds of a clock that never goes back.
double now();
/// 0 of nothing.
double median(std::vector<double> values);
/// Seconds of each call of `work`: at least `least` calls, then on until `seconds` are spent or there were `most`.
std::vector<double> repeat(int least, int most, double seconds, std::function<void()> const& work);
/// At most `most` of 0 to `count`-1, evenly spread.
std::vector<int> spread(int count, int most);

class Crew {
public:
    Crew(tapioca::comm::Team const& team, bool live, bool quick) : team_(team), live_(live), quick_(quick) {}
    [[nodiscard]] tapioca::comm::Team const& team() const { return team_; }
    [[nodiscard]] bool quick() const { return quick_; }

    /// Local; rank 0 shows "links 2 of 5: n0 and n1".
    void show(std::string const& part, int n, int of, std::string const& what) const;
    /// Clears a progress line. Local.
    void done() const;
    /// Waits for all. Ranks that measure poll; the others sleep, so as not to take cores from those. Collective.
    void meet(bool measuring) const;
    /// `values` of `rank` on every rank. Collective; all know how many there are.
    [[nodiscard]] std::vector<double> told_by(int rank, std::vector<double> values) const;
    /// The most of all ranks' values. Collective.
    [[nodiscard]] double most(double value) const;

private:
    tapioca::comm::Team const& team_;
    bool live_, quick_;
};

}  // namespace calibrate
