// Faults at the boundary of the library under test: the executable's own pwrite, close and so on take precedence over
// the C library's, and do what the kernel may do instead of succeeding. The stand-ins here are those for files; the
// others, which do not work together with the sanitizers, are in tests/faults.
#pragma once

#include <string>

namespace tapioca::faults {

/// Kinds of calls; each is counted separately.
enum class Op { open, close, write, read, sync, room, map, name, look, lock, thread, memory, ops };

enum class Kind {
    error,       ///< fails once, with an errno
    stays,       ///< fails from then on, as a full device does
    half,        ///< moves half of the bytes, once
    halves,      ///< moves half of the bytes, always
    nothing,     ///< moves no byte, once
    interrupts,  ///< fails with EINTR every other time
    stall,       ///< takes long, once
    truncate,    ///< somebody else cuts the file in half just before
};

/// One fault: the `at`-th call of a kind, counted from 1.
struct Fault {
    Op op = Op::write;
    Kind kind = Kind::error;
    int error = 0;
    int at = 0;  ///< 0: none
};

/// Injects the fault until disarm(). All of these functions are local. Only calls that the library under test makes
/// while it is inside one of its functions count; those of MPI and of the test itself are not affected.
void arm(Fault const& fault);
/// Returns how often the fault occurred.
int disarm();
/// The number of calls of a kind since arm().
int calls(Op op);

/// While an object of this class exists, the library is at work, and its calls are counted.
class Inside {
public:
    Inside();
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;
    ~Inside();
};

/// Sets the length of a stall.
void set_stall(double seconds);

/// While an object of this class exists, calls of one kind on one file of this process are faulty, whoever makes them.
class Armed {
public:
    Armed(std::string const& path, Op op, Kind kind, int at = 1, int error = 0);
    Armed(Armed const&) = delete;
    Armed& operator=(Armed const&) = delete;
    ~Armed();

    /// How many calls were faulty.
    [[nodiscard]] int fired() const;
};

}  // namespace tapioca::faults
