// The maker of programs, for the files that it is spread over: conforming_program.cpp,
// conforming_access.cpp and conforming_state.cpp.
#pragma once

#include "conforming_program.hpp"
#include "fuzz_generator.hpp"

namespace conforming {

using fuzz::s;
using fuzz::z;

/// Stands for a rank in the order of accesses: OMPIO's collective writes return before the ranks that write for others
/// have written, holes with what was in them too, and even a rank's own next access may come before that.
constexpr int aggregators = -1;

class Maker {
public:
    Maker(std::uint64_t seed, int ranks, fuzz::Stack stack);
    Program make(std::int64_t most_operations);

private:
    struct Handle {
        int file = 0;
        int order = 0;  ///< its number there
        int number = 0;
        std::vector<int> members;
        int amode = 0;
        bool open = true;
        bool atomic = false;
        bool external32 = false;
        bool crowded = false;  ///< there was another handle of the file at the same time
        bool same_views = true;
        std::vector<View> views;  ///< by rank of the world, as are the positions
        std::vector<std::int64_t> positions;
        std::int64_t shared = 0;
        TypePtr base;

        bool reads() const { return (amode & MPI_MODE_WRONLY) == 0; }
        bool writes() const { return (amode & MPI_MODE_RDONLY) == 0; }
    };
    struct File {
        Order order;
        Bytes bytes;
        Bytes defined;
        bool exists = false;
        std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }
    };
    struct Pending {
        std::size_t begun = 0;
        int handle = 0;
        bool by_all = false;
        std::vector<Order::Access> accesses;
        std::vector<int> members;
    };

    // conforming_program.cpp
    Operation& push(Operation operation);
    Operation on(Handle const& handle, Do what) const;
    void open(int file);
    void close(Handle& handle);
    void sync(Handle const& handle);
    void barrier();
    void complete(std::size_t pending);
    void complete_on(int handle, bool collective_only = false);
    void complete_for_ompio();
    void settle(Handle const* target, std::set<Order::Conflict> const& conflicts, std::vector<int> const& ranks,
                int file);
    void order_before(int file, Handle const* target, std::vector<Order::Access> const& accesses);
    void one_operation();
    Handle* any_handle();

    // conforming_state.cpp
    void view(Handle& handle);
    void atomicity(Handle& handle);
    void set_size(Handle& handle);
    void ask_size(Handle& handle);
    void seek(Handle& handle);
    bool has_shared_pointer(Handle const& handle) const;
    void seek_shared(Handle& handle);

    // conforming_access.cpp
    bool shape(Handle const& handle, fuzz::Access const& access, int rank, std::int64_t offset, Part& part,
               Order::Access& touched);
    void fill(Handle const& handle, bool write, Part& part, Segments const& extents);
    std::int64_t random_offset(Handle const& handle, int rank);
    bool converts_all(Handle const& handle) const;
    void before_pointer(Handle const& handle);
    void alone(Handle& handle);
    void together(Handle& handle);
    void shared_alone(Handle& handle);
    void ordered(Handle& handle);
    void two_at_once();
    void posix(int file);
    void perform(Handle& handle, Operation operation, std::vector<Order::Access> accesses);
    void finish_own(int handle, std::vector<Order::Access> const& accesses);
    static bool fits(Order::Access const& a, Order::Access const& b);
    bool plan_together(Handle& handle, Operation& operation, std::vector<Order::Access>& accesses);
    void begin_apart(Operation const& whole, Operation const* between);
    void after_shared(Handle& handle);
    std::string describe(Operation const& operation) const;

    std::uint64_t seed_;
    fuzz::Random random_;
    int ranks_;
    fuzz::Stack stack_;
    fuzz::Avoid avoid_;
    bool bytewise_;
    std::int64_t scale_;  ///< of offsets and sizes: some programs fill blocks of the file system
    std::vector<int> world_;
    std::vector<std::int64_t> recent_;  ///< by rank: where in its view it was last, in bytes
    std::vector<File> files_;
    std::vector<Handle> handles_;  ///< closed ones too
    std::vector<Pending> pending_;
    Program out_;
};

}  // namespace conforming
