// SealedDrainer: brings subfiles that their group has finished from a tier to the directory of the set, one after the
// other, in a thread beside the program. It makes no MPI call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "subfile/drain.hpp"
#include "target/worker.hpp"

namespace tapioca::subfile {

class SealedDrainer {
public:
    struct Where {
        std::string directory;  ///< of the set
        std::string place;      ///< of the set on the tier
        SetId identity = {};
        std::uint64_t most = 0;    ///< bytes that may wait on the tier
        std::uint64_t groups = 1;  ///< that write to this node's tier at the same time, and want as much room each
    };
    SealedDrainer(Where where, cpu_set_t const& cores);
    SealedDrainer(SealedDrainer const&) = delete;
    SealedDrainer& operator=(SealedDrainer const&) = delete;
    /// Waits for the subfile that is being drained. The others stay on the tier.
    ~SealedDrainer();

    struct Sealed {
        std::uint32_t number;
        std::uint64_t bytes;
        Drain::Writer writer = Drain::Writer::writes;
    };
    /// Nothing will be written to this subfile any more, and no file of this process has it open.
    void add(Sealed const& subfile);
    /// Whether there is room for so many bytes, beside `held` ones that this drainer does not know of yet.
    [[nodiscard]] bool has_room(std::uint64_t bytes, std::uint64_t held) const;

    // Draining may take hours, and nobody may wait for a rank that long. So these wait for a turn at most.
    static constexpr auto turn = std::chrono::milliseconds(250);
    /// Waits until there is room. `no` if there is none, although nothing is left to be drained.
    enum class Room { yes, no, not_yet };
    Room wait_for_room(std::uint64_t bytes, std::uint64_t held);
    /// Waits until everything is in the directory, durably, or something has failed. Returns whether that is so.
    bool wait_for_end();

    /// The first error; what could not be drained stays on the tier.
    [[nodiscard]] core::Status status() const;
    /// Forgets an error, and tries again what could not be drained.
    void try_again();
    /// Makes durable, on the tier, what is not drained yet, and `others`, which were not added.
    core::Status sync(std::vector<Sealed> const& others = {});

    struct Counts {
        std::uint64_t subfiles = 0;
        std::uint64_t bytes = 0;
        double seconds = 0;  ///< of draining
    };
    [[nodiscard]] Counts counts() const;

private:
    void launch();
    void run();
    core::Status drain(Sealed const& subfile);
    [[nodiscard]] bool room(std::uint64_t bytes, std::uint64_t held) const;

    Where where_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Sealed> waiting_;
    std::uint64_t held_ = 0;  ///< bytes of those that wait or are being drained
    bool draining_ = false;
    bool stop_ = false;
    bool launched_ = false;  ///< run() is running
    core::Status status_;
    core::Failure lack_;  ///< of memory: made before run(), since it cannot be made then
    Counts counts_;
    target::Worker worker_;
};

}  // namespace tapioca::subfile
