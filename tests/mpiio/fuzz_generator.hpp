// The maker of cases, for the files that it is spread over: fuzz_case.cpp, fuzz_view.cpp, fuzz_data.cpp.
#pragma once

#include "fuzz_case.hpp"

namespace fuzz {

inline std::size_t z(int i)
{
    return static_cast<std::size_t>(i);
}
inline std::string s(std::int64_t value)
{
    return std::to_string(value);
}

class Generator {
public:
    Generator(std::uint64_t seed, int ranks, int me, Avoid const& avoid)
        : random_(seed * 0x2545f4914f6cdd1dU + 17), ranks_(ranks), me_(me), avoid_(avoid)
    {
        out_.seed = seed;
    }

    Case make();

private:
    struct Slot {
        Model model;
        TypePtr base = named(MPI_BYTE, "BYTE", 1);
        bool wild_view = false;   ///< one that only the library under test can be trusted with
        std::vector<Part> shape;  ///< types and counts of the last collective access
        bool shape_usable = false;
        bool shape_wild = false;
    };

    // fuzz_case.cpp
    Bytes noise(std::int64_t length);
    Step& push(Step step);
    Step collective(int i, Do what);
    void expect_positions(Step& step) const;
    void look_at_file(Step& step) const;
    void open(int i);
    void close(int i);
    void sync(int i);
    void sync_if_size_is_open(int i);
    void one_step(int i);
    void seek_apart(int i);
    void seek(int i);
    void seek_shared(int i);
    void resize(int i);
    void atomicity(int i);
    void set_info(int i);
    void query(int i);
    void failing(int i);
    void null_file(int i);

    // fuzz_view.cpp
    TypePtr random_etype(Slot& slot, bool simple);
    void view(int i);

    // fuzz_data.cpp
    void choose_memory(Slot const& slot, View const& view, Step const& step, Part& part);
    std::int64_t random_offset(Model const& model, View const& view, std::int64_t bytes, bool write);
    void fill_buffer(Part& part);
    void choose_access(Slot const& slot, Step& step);
    void choose_participants(Model const& model, Step& step);
    void data(int i);
    void choose_alone(Slot const& slot, Step& step) const;
    void expect_data(Step& step, Model& model, std::uint64_t equal_contents);

    Random random_;
    int ranks_;
    int me_;
    Avoid avoid_;
    std::vector<Slot> slots_;
    Case out_;
};

/// What applications do: the data of `n` ranks alternates, or each rank has a part of one array. With `careful` there
/// is no darray of types other than named ones.
std::vector<View> interleaved(Random& random, int n, TypePtr const& etype, bool careful);
/// Of a data access, for people.
char const* name_of(Where where, How how);
/// Whether both are in order, and have a byte in common.
bool overlap(Segments const& a, Segments const& b);

}  // namespace fuzz
