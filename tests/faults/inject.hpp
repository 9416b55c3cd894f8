// Faults at the boundary of the library under test: the executable's own open, pwrite, mmap, operator new and so on
// come before the C library's, and do what the kernel may do instead of succeeding. Only calls of our own code count,
// made while it is inside one of its functions; those of MPI and of the test itself go straight through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapioca::faults {

/// Kinds of calls; each is counted by itself.
enum class Op { open, close, write, read, sync, room, map, name, look, lock, thread, memory, ops };
char const* name(Op op);

enum class Kind {
    error,     ///< fails once, with an errno
    stays,     ///< fails from then on, as a full device does
    half,      ///< moves half of the bytes, once
    nothing,   ///< moves no byte, once
    stall,     ///< takes long, once
    truncate,  ///< somebody else cuts the file in half just before
};

/// One fault: the `at`-th call of a kind, counted from 1.
struct Fault {
    Op op = Op::write;
    Kind kind = Kind::error;
    int error = 0;
    int at = 0;  ///< 0: none
};
std::string describe(Fault const& fault);
/// Every way in which a kind of call may fail; `at` is 0.
std::vector<Fault> all_faults();

/// From now on until disarm(). Local, like all of these.
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

/// What a process has: to be the same before and after.
struct Belongings {
    int descriptors = 0;
    int threads = 0;
    int shared_mappings = 0;       ///< of files
    std::int64_t allocations = 0;  ///< by operator new, not yet deleted
};
Belongings look();
/// The first of the files and directories that our code has made since arm() and that is still there, but for those
/// in `directory`; or nothing.
std::string left_over(std::string const& directory);
/// What there is more of, in words; empty if nothing.
std::string surplus(Belongings const& before, Belongings const& after);

}  // namespace tapioca::faults
