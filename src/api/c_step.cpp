// Steps for C: handles around tapioca::Step.
#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "api/c_face.hpp"
#include "api/c_fortran.hpp"

namespace tapioca::c {

namespace {

constexpr char const* the_step = "the step handle";

/// The step of a handle, whose variables must be supplied by number.
Step& by_number(TAPIOCA_Step step, char const* call)
{
    auto& handle = alive(step, call, the_step);
    if (handle.by_offset)
        refuse(Errc::invalid_state, call, "a step of TAPIOCA_Init must be run by TAPIOCA_Write, _Read and _Wait");
    return handle.step;
}

void supply_by_number(TAPIOCA_Step handle, char const* call, declared::Op op, int var, SuppliedMemory const& memory)
{
    auto& step = api::Internals::of(by_number(handle, call));
    auto local = memory.problem;
    if (memory.bytes < 0)
        core::keep_first(local, core::fail(Errc::invalid_argument,
                                           fmt::format("{} bytes: the number must not be negative", memory.bytes)));
    if (var < 0) core::keep_first(local, core::fail(Errc::invalid_argument, "there is no such variable"));
    if (!local)
        step.spoil(core::fail(local.error().code, fmt::format("{}(variable {}): {}", call, var, local.error().text)));
    supply(step, static_cast<std::size_t>(var), memory, op);  // a bad number is out of range in C++, too
}

/// The arrays that describe a section; `stride` may be null.
struct SectionArguments {
    int ndims;
    std::int64_t const* shape;
    std::int64_t const* start;
    std::int64_t const* count;
    std::int64_t const* stride;
    std::int64_t element_size;
};

SuppliedMemory section_memory(void const* array, SectionArguments const& section)
{
    auto const& [ndims, shape, start, count, stride, element_size] = section;
    SuppliedMemory memory;
    memory.problem = check_dimensions(ndims, {shape, start, count});
    if (!memory.problem) return memory;
    auto const placed = pattern::place_section(
        {list(ndims, shape), list(ndims, start), list(ndims, count), list(ndims, stride)}, element_size);
    if (!placed) {
        memory.problem = tl::unexpected(placed.error());
        return memory;
    }
    memory.shape = placed->shape;
    if (array) memory.first = const_cast<std::byte*>(static_cast<std::byte const*>(array)) + placed->begin;
    return memory;
}

}  // namespace
}  // namespace tapioca::c

using namespace tapioca;

int TAPIOCA_Declare(TAPIOCA_File file, TAPIOCA_Pattern pattern, TAPIOCA_Step* step)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Declare";
        auto& handle = c::alive(file, call, "the file handle");
        if (step) *step = TAPIOCA_STEP_NULL;
        auto* const what = c::Handles<TAPIOCA_Pattern_s>::all().find(pattern);
        auto local = c::not_null(pattern, "the pattern handle");
        core::keep_first(local, c::not_null(step, "the pointer for the step handle"));
        if (local && !what)
            local = core::fail(Errc::invalid_argument, "the pattern handle is not valid: freed before?");
        if (local) local = what->status;
        c::agree(handle, call, local);
        *step = c::Handles<TAPIOCA_Step_s>::all().give({handle.file.declare(what->pattern), false, {}, {}});
    });
}

int TAPIOCA_Step_write(TAPIOCA_Step step, int var, void const* data, int64_t bytes)
{
    return c::guarded([&] {
        auto* const first = static_cast<std::byte*>(const_cast<void*>(data));
        c::supply_by_number(step, "TAPIOCA_Step_write", declared::Op::write, var, {first, bytes});
    });
}

int TAPIOCA_Step_read(TAPIOCA_Step step, int var, void* data, int64_t bytes)
{
    return c::guarded([&] {
        c::supply_by_number(step, "TAPIOCA_Step_read", declared::Op::read, var, {static_cast<std::byte*>(data), bytes});
    });
}

int TAPIOCA_Step_write_section(TAPIOCA_Step step, int var, void const* array, int ndims, int64_t const shape[],
                               int64_t const start[], int64_t const count[], int64_t const stride[],
                               int64_t element_size)
{
    return c::guarded([&] {
        c::supply_by_number(step, "TAPIOCA_Step_write_section", declared::Op::write, var,
                            c::section_memory(array, {ndims, shape, start, count, stride, element_size}));
    });
}

int TAPIOCA_Step_read_section(TAPIOCA_Step step, int var, void* array, int ndims, int64_t const shape[],
                              int64_t const start[], int64_t const count[], int64_t const stride[],
                              int64_t element_size)
{
    return c::guarded([&] {
        c::supply_by_number(step, "TAPIOCA_Step_read_section", declared::Op::read, var,
                            c::section_memory(array, {ndims, shape, start, count, stride, element_size}));
    });
}

int tapioca_fortran_step_write(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes)
{
    return c::guarded(
        [&] { c::supply_by_number(step, "tapioca_step_write", declared::Op::write, var, c::memory_of(*data, bytes)); });
}

int tapioca_fortran_step_read(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes)
{
    return c::guarded(
        [&] { c::supply_by_number(step, "tapioca_step_read", declared::Op::read, var, c::memory_of(*data, bytes)); });
}

int TAPIOCA_Step_finish(TAPIOCA_Step step, TAPIOCA_Moved* moved)
{
    return c::guarded([&] { c::assign(moved, c::by_number(step, "TAPIOCA_Step_finish").finish()); });
}

int TAPIOCA_Step_start(TAPIOCA_Step step)
{
    return c::guarded([&] { c::by_number(step, "TAPIOCA_Step_start").start(); });
}

int TAPIOCA_Step_progress(TAPIOCA_Step step, int* done)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Step_progress";
        c::required(done, call, "the pointer for the answer") = c::by_number(step, call).progress() ? 1 : 0;
    });
}

int TAPIOCA_Step_wait(TAPIOCA_Step step, TAPIOCA_Moved* moved)
{
    return c::guarded([&] { c::assign(moved, c::by_number(step, "TAPIOCA_Step_wait").wait()); });
}

int TAPIOCA_Step_received(TAPIOCA_Step step, int var, int64_t* bytes)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Step_received";
        auto const& handle = c::alive(step, call, c::the_step);
        c::required(bytes, call, "the pointer for the bytes") =
            static_cast<int64_t>(handle.step.received(static_cast<std::size_t>(var)));
    });
}

int TAPIOCA_Step_rebase(TAPIOCA_Step step, int64_t offset)
{
    return c::guarded([&] { c::alive(step, "TAPIOCA_Step_rebase", c::the_step).step.rebase(offset); });
}

int TAPIOCA_Step_retarget(TAPIOCA_Step step, TAPIOCA_File file)
{
    return c::guarded([&] {
        auto& target = c::alive(file, "TAPIOCA_Step_retarget", "the file handle");
        c::alive(step, "TAPIOCA_Step_retarget", c::the_step).step.retarget(target.file);
    });
}

int TAPIOCA_Step_plan_text(TAPIOCA_Step step, char const** text)
{
    return c::guarded([&] {
        auto& handle = c::alive(step, "TAPIOCA_Step_plan_text", c::the_step);
        auto& out = c::required(text, "TAPIOCA_Step_plan_text", "the pointer for the text");
        handle.plan_text = handle.step.plan().explain();
        out = handle.plan_text.c_str();
    });
}

int TAPIOCA_Step_plan_json(TAPIOCA_Step step, char const** json)
{
    return c::guarded([&] {
        auto& handle = c::alive(step, "TAPIOCA_Step_plan_json", c::the_step);
        auto& out = c::required(json, "TAPIOCA_Step_plan_json", "the pointer for the text");
        handle.plan_json = handle.step.plan().json();
        out = handle.plan_json.c_str();
    });
}

int TAPIOCA_Step_free(TAPIOCA_Step* step)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Step_free";
        auto& handle = c::required(step, call, "the pointer to the step handle");
        if (handle && c::alive(handle, call, c::the_step).by_offset)
            c::refuse(Errc::invalid_state, call, "a step of TAPIOCA_Init must be ended by TAPIOCA_Finalize");
        c::give_back(handle, call, c::the_step);
    });
}
