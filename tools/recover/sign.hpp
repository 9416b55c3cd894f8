// Sign: while a recovery writes, the marker says so, and when that was last the case.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "stage/marker.hpp"

namespace recover {

class Sign {
public:
    /// Notes it at once, and from then on four times a second. `before` is what the marker says.
    Sign(tapioca::stage::Descriptor const& marker, tapioca::stage::Noted const& before,
         tapioca::stage::FileFacts const& file);
    ~Sign();
    Sign(Sign const&) = delete;
    Sign& operator=(Sign const&) = delete;

private:
    void give();

    tapioca::stage::Descriptor const& marker_;
    tapioca::stage::Noted noted_;
    std::int64_t ahead_ns_ = 0;  ///< of the target's clock, which is the marker's
    std::mutex mutex_;
    std::condition_variable ended_;
    bool end_ = false;
    std::thread thread_;
};

}  // namespace recover
