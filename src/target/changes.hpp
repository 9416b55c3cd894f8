// Changes: records when a process is about to change a file, so that it can be found out later who changed it last.
#pragma once

#include <atomic>
#include <cstdint>

namespace tapioca::target {

class Changes {
public:
    /// Stores the time in `*when`, which must stay valid as long as this object. `ahead_ns`: how far the clock of the
    /// file's times is ahead of this host's. `durable_in`: the file that contains `when`, if the record must survive a
    /// crash of the machine; otherwise -1.
    Changes(std::uint64_t* when, std::int64_t ahead_ns, int durable_in)
        : when_(when), ahead_ns_(ahead_ns), durable_in_(durable_in)
    {
    }
    Changes(Changes const&) = delete;
    Changes& operator=(Changes const&) = delete;

    /// The file is about to be changed, or was changed just now. Any thread.
    void note();
    /// Somebody has reset the record.
    void forget() { synced_ns_ = 0; }

private:
    std::uint64_t* when_;
    std::int64_t ahead_ns_;
    int durable_in_;
    std::atomic<std::uint64_t> synced_ns_ = 0;  ///< the time that has been made durable
};

}  // namespace tapioca::target
