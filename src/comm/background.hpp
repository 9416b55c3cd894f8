// Background: a thread of ours that does a program's work beside the program's own threads.
#pragma once

namespace tapioca::comm {

/// While one of these lives, this thread makes no MPI call, which the program's thread level may forbid; it sleeps
/// where it waits, since the program computes meanwhile; and its waits have no time-out: nobody waits for it but in a
/// call of the program's, which has one.
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
