// Sign: while a recovery writes, the marker says so, with the time of the last note.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "stage/marker.hpp"

namespace recover {

class Sign {
public:
    /// Writes a note at once, and then four times a second. `before` is the marker's present note.
    Sign(tapioca::stage::Descriptor const& marker, tapioca::stage::Noted const& before,
         tapioca::stage::FileFacts const& file);
    ~Sign();
    Sign(Sign const&) = delete;
    Sign& operator=(Sign const&) = delete;

private:
    void give();

    tapioca::stage::Descriptor const& marker_;
    tapioca::stage::Noted noted_;
    std::int64_t ahead_ns_ = 0;  ///< how far the target's clock, which is also the marker's, is ahead
    std::mutex mutex_;
    std::condition_variable ended_;
    bool end_ = false;
    std::thread thread_;
};

}  // namespace recover
