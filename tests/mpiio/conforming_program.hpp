// Programs that conform to the MPI standard, made from a seed, with the required result of each of their calls.
#pragma once

#include "conforming_order.hpp"
#include "fuzz_known.hpp"

namespace conforming {

using fuzz::Bytes;
using fuzz::How;
using fuzz::TypePtr;
using fuzz::View;
using fuzz::Where;

enum class Do {
    Open,
    Close,
    View,
    Access,    ///< of data; the beginning, where it is split or nonblocking
    Complete,  ///< the end of one
    Seek,
    SeekShared,
    SetSize,
    Atomicity,
    Sync,
    Barrier,
    Size,
    SharedPosition,
    PosixRead,
    PosixWrite
};

/// One rank's share of an access.
struct Part {
    int rank = 0;
    std::int64_t offset = 0;  ///< in etypes; of PosixRead and PosixWrite in bytes
    TypePtr type;
    int count = 0;
    Bytes buffer;                ///< before
    Bytes wanted;                ///< after a read
    Bytes sure;                  ///< by byte of `wanted`: whether the standard says what it is
    bool all = true;             ///< a read that does not meet the end of the file
    std::int64_t position = -1;  ///< where the individual pointer is then
};

struct Operation {
    Do what = Do::Barrier;
    int file = 0;
    int handle = 0;            ///< its number in the program
    std::vector<int> members;  ///< the ranks that take part; of an open, those of the communicator
    fuzz::Access access;
    std::size_t begun = 0;    ///< by Complete: the number of the operation; also of the parts of one that begin apart
    std::vector<Part> parts;  ///< of `members`
    std::vector<View> views;  ///< by rank of the world
    bool external32 = false;
    std::int64_t size = 0;  ///< set, found, sought, or the flag of set_atomicity
    int amode = 0;
    bool hint = false;  ///< the stage is asked for by a hint too
    std::string text;
};

struct Program {
    std::uint64_t seed = 0;
    std::vector<Bytes> before;  ///< the files, where they exist
    std::vector<bool> existed;
    std::vector<Operation> operations;
    std::vector<Bytes> after;
    std::vector<Bytes> sure;  ///< by byte of `after`: whether the standard says what it is
    std::vector<bool> exists;
};

/// Local; the same on every rank. With fewer operations, it is the beginning of the same program.
Program make_program(std::uint64_t seed, int ranks, fuzz::Stack stack, std::int64_t most_operations);

}  // namespace conforming
