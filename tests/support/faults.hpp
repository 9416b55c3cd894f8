// Faults at the boundary of the library under test: the executable's own pwrite, close and so on come before the C
// library's, and do what the kernel may do instead of succeeding. The stand-ins here are those for files; tests/faults
// has the others, which cannot be had beside the sanitizers.
#pragma once

#include <string>

namespace tapioca::faults {

/// Kinds of calls; each is counted by itself.
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

/// From now on until disarm(). Local, like all of these. Only calls of our own code count, made while it is inside one
/// of its functions; those of MPI and of the test itself go straight through.
void arm(Fault const& fault);
/// How often the fault came true.
int disarm();
/// Calls of a kind since arm().
int calls(Op op);

/// While one lives, the library is at work: its calls are counted.
class Inside {
public:
    Inside();
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;
    ~Inside();
};

/// How long a stall is.
void set_stall(double seconds);

/// While alive, calls of one kind on one file of this process are faulty, whoever makes them.
class Armed {
public:
    Armed(std::string const& path, Op op, Kind kind, int at = 1, int error = 0);
    Armed(Armed const&) = delete;
    Armed& operator=(Armed const&) = delete;
    ~Armed();

    /// How many calls were spoiled.
    [[nodiscard]] int fired() const;
};

}  // namespace tapioca::faults
