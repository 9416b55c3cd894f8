// What the functions of tapioca.h share: handles, access to what is behind File and Step, and errors as codes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tapioca/tapioca.h>

#include "api/internals.hpp"

namespace tapioca::c {
class Declared;
}

struct TAPIOCA_Pattern_s {
    tapioca::Pattern pattern;
    tapioca::core::Status status;  ///< the first mistake, which TAPIOCA_Declare reports
};

struct TAPIOCA_Step_s {
    tapioca::Step step;
    bool by_offset;  ///< the step is run by TAPIOCA_Write and TAPIOCA_Read of its file
    std::string plan_text, plan_json;
};

struct TAPIOCA_File_s {
    tapioca::File file;
    std::unique_ptr<tapioca::c::Declared> declared;
};

namespace tapioca::c {

/// A new number for a handle. Numbers are unique across all types of handles.
std::uintptr_t next_number();

/// Handles of C and Fortran are numbers that are cast to pointers. No two objects ever have the same number, so a
/// handle that is used after its object is gone is detected, and not dereferenced. Threads may use this table at the
/// same time.
template <class T>
class Handles {
public:
    /// The table of this type. It is never destroyed, since programs may end with open files.
    static Handles& all()
    {
        static auto& handles = *new Handles;
        return handles;
    }
    T* enter(T& object)
    {
        auto const number = next_number();
        std::lock_guard const lock(mutex_);
        objects_.emplace(number, &object);
        return reinterpret_cast<T*>(number);
    }
    /// Makes a handle for an object that is deleted when the handle is given back.
    T* give(T object)
    {
        auto own = std::make_unique<T>(std::move(object));
        auto* const handle = enter(*own);
        (void)own.release();
        return handle;
    }
    /// Null if there is no such object, or if it no longer exists.
    [[nodiscard]] T* find(T* handle)
    {
        std::lock_guard const lock(mutex_);
        auto const at = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
        return at == objects_.end() ? nullptr : at->second;
    }
    void strike_out(T* handle)
    {
        std::lock_guard const lock(mutex_);
        objects_.erase(reinterpret_cast<std::uintptr_t>(handle));
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::uintptr_t, T*> objects_;
};

/// Memory that was supplied for a variable: `bytes` bytes at `first` or, if there is a shape, the elements of that
/// shape.
struct SuppliedMemory {
    std::byte* first = nullptr;
    std::int64_t bytes = 0;
    std::optional<pattern::MemoryShape> shape = {};
    core::Status problem = {};  ///< what is wrong with the memory
};
/// Supplies `memory` for a variable, even if it has a problem.
void supply(declared::StepState& step, std::size_t var, SuppliedMemory const& memory, declared::Op op);

/// The step of TAPIOCA_Init: finds variables by offset, counts calls, and runs the step with the last one.
class Declared {
public:
    struct DeclaredVariable {
        std::int64_t offset, count, type_size;
        auto operator<=>(DeclaredVariable const&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
    };

    Declared(Step step, std::vector<DeclaredVariable> variables);
    Declared(Declared const&) = delete;
    Declared& operator=(Declared const&) = delete;
    ~Declared();

    /// One TAPIOCA_Write or TAPIOCA_Read. Collective if it is the last of the run.
    void supply(declared::Op op, DeclaredVariable const& which, SuppliedMemory memory, TAPIOCA_Status* status);
    void split();
    bool progress();
    Moved wait();
    /// Fails if a run was begun and not completed. Local.
    [[nodiscard]] core::Status idle() const;
    [[nodiscard]] TAPIOCA_Step handle() const { return handle_; }

private:
    enum class Phase {
        gathering,
        under_way,
        failed,  ///< a split run failed to start; TAPIOCA_Wait only reports that
    };
    struct RecordedCall {
        TAPIOCA_Status* status;
        std::size_t var;  ///< variables_.size() if there is none
    };

    [[nodiscard]] core::Result<std::size_t> take(DeclaredVariable const& which);
    void begin();
    void settle(int code);

    TAPIOCA_Step_s step_;
    TAPIOCA_Step handle_;
    std::vector<DeclaredVariable> variables_;
    std::vector<std::size_t> order_;  ///< variables by offset, count and type size
    std::vector<std::size_t>
        taken_;  ///< by position in order_: how many of the equal variables that begin there are supplied
    std::vector<RecordedCall> calls_;
    declared::Op op_ = declared::Op::write;
    Phase phase_ = Phase::gathering;
    bool split_ = false;
    Moved moved_;
    std::optional<Error> error_;  ///< the error of a run that failed to start
};

/// Keeps the exception being handled as this thread's last failure and returns its code.
int remember() noexcept;

/// Runs `body` and returns its outcome as a code.
template <class Body>
int guarded(Body&& body) noexcept
{
    try {
        body();
        return TAPIOCA_SUCCESS;
    } catch (...) {
        return remember();
    }
}

[[noreturn]] void refuse(Errc code, char const* call, std::string const& what);

/// Throws if a pointer is null. Local.
template <class T>
T& required(T* pointer, char const* call, char const* what)
{
    if (!pointer) refuse(Errc::invalid_argument, call, std::string(what) + " is null");
    return *pointer;
}

/// The object of a handle. Throws if the handle is null or was given back. Local.
template <class T>
T& alive(T* handle, char const* call, char const* what)
{
    auto* const object = Handles<T>::all().find(handle);
    if (object) return *object;
    refuse(Errc::invalid_argument, call,
           std::string(what) + (handle ? " is not valid: closed, released or freed before?" : " is null"));
}

/// Deletes the object of a handle. Does nothing if the handle is null.
template <class T>
void give_back(T*& handle, char const* call, char const* what)
{
    if (handle) {
        std::unique_ptr<T> const object(&alive(handle, call, what));
        Handles<T>::all().strike_out(handle);
    }
    handle = nullptr;
}

/// Throws on every rank if `local` is a failure on one. Collective.
void agree(TAPIOCA_File_s& file, char const* call, core::Status const& local);

/// A failure if there are no dimensions or one of the arrays is null.
core::Status check_dimensions(int ndims, std::initializer_list<std::int64_t const*> arrays);
/// Empty if `numbers` is null.
std::vector<std::int64_t> list(int ndims, std::int64_t const* numbers);

/// A failure if `pointer` is null.
core::Status not_null(void const* pointer, char const* what);

void assign(TAPIOCA_Moved* out, Moved const& moved);

}  // namespace tapioca::c
