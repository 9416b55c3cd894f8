// Background: marks a thread of the library that works beside the program's own threads.
#pragma once

namespace tapioca::comm {

/// While an object of this class exists, the thread makes no MPI call, which the program's thread level may forbid. It
/// sleeps while it waits, because the program computes meanwhile. Its waits have no time-out: others wait for it only
/// in calls of the program, which have one.
class Background {
public:
    Background() { ++depth; }
    Background(Background const&) = delete;
    Background& operator=(Background const&) = delete;
    ~Background() { --depth; }
    [[nodiscard]] static bool now() { return depth > 0; }

private:
    inline static thread_local int depth = 0;
};

}  // namespace tapioca::comm
