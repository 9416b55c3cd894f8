// Steps for C: handles around tapioca::Step.
#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "api/c_face.hpp"
#include "api/c_fortran.hpp"

namespace tapioca::c {

namespace {

constexpr char const* the_step = "the step handle";

/// A step that is run by variable number.
Step& by_number(TAPIOCA_Step step, char const* call)
{
    auto& handle = alive(step, call, the_step);
    if (handle.by_offset)
        refuse(Errc::invalid_state, call, "a step of TAPIOCA_Init is run by TAPIOCA_Write, _Read and _Wait");
    return handle.step;
}

void supply(TAPIOCA_Step handle, char const* call, declared::Op op, int var, void* data, std::int64_t bytes,
            core::Status const& problem = {})
{
    auto& step = by_number(handle, call);
    auto local = problem;
    if (bytes < 0) core::keep_first(local, core::fail(Errc::invalid_argument, fmt::format("{} bytes", bytes)));
    if (var < 0) core::keep_first(local, core::fail(Errc::invalid_argument, "there is no such variable"));
    if (!local)
        api::Internals::of(step).spoil(
            core::fail(local.error().code, fmt::format("{}(variable {}): {}", call, var, local.error().text)));
    auto const number = static_cast<std::size_t>(var);  // a bad one is out of range for C++, too
    auto* const first = static_cast<std::byte*>(data);
    auto const length = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
    if (op == declared::Op::write)
        step.write(number, std::span<std::byte const>(first, length));
    else
        step.read(number, std::span<std::byte>(first, length));
}

void supply_array(TAPIOCA_Step step, char const* call, declared::Op op, int var, void* data, std::int64_t available,
                  std::int64_t bytes)
{
    constexpr auto unknown = std::numeric_limits<std::int64_t>::max();
    auto problem = check_array(available, bytes, 1);
    if (bytes < 0 && available == unknown)
        problem = core::fail(Errc::invalid_argument, "the array's size is not known here: pass `bytes`");
    supply(step, call, op, var, data, bytes >= 0 ? bytes : available < 0 ? 0 : available, problem);
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
    return c::guarded(
        [&] { c::supply(step, "TAPIOCA_Step_write", declared::Op::write, var, const_cast<void*>(data), bytes); });
}

int TAPIOCA_Step_read(TAPIOCA_Step step, int var, void* data, int64_t bytes)
{
    return c::guarded([&] { c::supply(step, "TAPIOCA_Step_read", declared::Op::read, var, data, bytes); });
}

int tapioca_fortran_step_write(TAPIOCA_Step step, int var, void* data, int64_t available, int64_t bytes)
{
    return c::guarded(
        [&] { c::supply_array(step, "tapioca_step_write", declared::Op::write, var, data, available, bytes); });
}

int tapioca_fortran_step_read(TAPIOCA_Step step, int var, void* data, int64_t available, int64_t bytes)
{
    return c::guarded(
        [&] { c::supply_array(step, "tapioca_step_read", declared::Op::read, var, data, available, bytes); });
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
            c::refuse(Errc::invalid_state, call, "a step of TAPIOCA_Init is ended by TAPIOCA_Finalize");
        c::give_back(handle, call, c::the_step);
    });
}
