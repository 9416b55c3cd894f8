// TAPIOCA for C++: declare what will be written or read collectively, then move it.
//
//     auto file = tapioca::File::open(comm, "out.dat", tapioca::Mode::create);   // collective
//     tapioca::Pattern pattern;
//     auto u = pattern.add<double>("u", tapioca::block_of({.shape = {nx, ny}, .ranks = ranks, .rank = rank}));
//     auto step = file.declare(pattern);                                         // collective: plans
//     step.write(u, data);                                                       // local
//     step.finish();                                                             // collective
//     file.close();                                                              // collective
//
// Collective calls throw tapioca::Error, the same one on every rank. docs/collectives.md lists which
// calls are collective, when buffers may be reused, and what is durable.
#pragma once

#include <tapioca/cxx20.hpp>

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ranges>
#include <span>
#include <string>

#include <tapioca/built_for.h>
#include <tapioca/error.hpp>
#include <tapioca/options.hpp>
#include <tapioca/pattern.hpp>
#include <tapioca/section.hpp>
#include <tapioca/version.hpp>

#pragma GCC visibility push(default)

namespace tapioca {

namespace declared {
class FileState;
class StepState;
}  // namespace declared
namespace api {
struct Internals;  ///< how the C face reaches the two above
}

enum class Mode {
    create,  ///< make the file, or empty an existing one; write and read
    update,  ///< an existing file; write and read
    read,    ///< an existing file; read only
};

/// What a collective step did, on this rank.
struct Moved {
    std::uint64_t bytes = 0;             ///< bytes of this rank's variables written, or read before the file's end
    std::uint64_t overlapped_bytes = 0;  ///< bytes this rank drained between start() and wait()
};

/// How a declared step will be carried out. A value, the same on every rank.
class Plan {
public:
    Plan(std::string text, std::string json) : text_(std::move(text)), json_(std::move(json)) {}
    /// For people: aggregators, rounds, predicted cost, alternatives, options and their origin.
    [[nodiscard]] std::string const& explain() const noexcept { return text_; }
    /// The same as a JSON object.
    [[nodiscard]] std::string const& json() const noexcept { return json_; }

private:
    std::string text_;
    std::string json_;
};

class Step;

/// An open file on a communicator. Movable, not copyable.
class File {
public:
    /// Opens `path`. Collective over `comm`: all ranks pass the same arguments. Rank 0 creates the
    /// file; other ranks open it when they first do I/O, on several nodes one rank of each at once. It
    /// is an error if they find another file than rank 0's, then or later (docs/collectives.md).
    /// `comm` may be freed while the file is open, and the working directory may change.
    static File open(MPI_Comm comm, std::filesystem::path const& path, Mode mode, Options const& options = {},
                     MPI_Info info = MPI_INFO_NULL);

    File(File&&) noexcept;
    File& operator=(File&&) noexcept;
    /// Releases this rank's descriptor without communication. Call close() to learn of errors.
    ~File();

    /// Plans a step for `pattern`. Collective. The step can be run again and again.
    [[nodiscard]] Step declare(Pattern const& pattern);
    /// Brings what is in the log of a staged file into the file (docs/stage.md). Collective; nothing to do for others.
    void flush();
    /// Makes everything written so far durable. Collective.
    void sync();
    /// Bytes in the file now. Collective.
    [[nodiscard]] std::uint64_t size();
    /// Collective. Writes the report, if one was asked for. Closes the file also when it throws, but for
    /// a step under way; a step that was supplied and never run is an error.
    void close();
    [[nodiscard]] bool is_open() const noexcept;

private:
    friend class Step;
    friend struct api::Internals;
    explicit File(std::shared_ptr<declared::FileState> state);
    std::shared_ptr<declared::FileState> state_;
};

/// A declared step: supply or receive each variable's buffer, then finish(); then again with new
/// buffers. One step of a communicator is in flight at a time.
class Step {
public:
    Step(Step&&) noexcept;
    Step& operator=(Step&&) noexcept;
    ~Step();

    /// Supplies the bytes of variable `var`, to be written. Local. `bytes` must stay valid and
    /// unchanged until finish() or wait() returns. A variable of no bytes need not be supplied.
    /// What is wrong here (size, number, twice) is thrown by finish() or wait(), on every rank.
    void write(std::size_t var, std::span<std::byte const> bytes);
    /// Names the buffer that receives variable `var`. Local; otherwise as write().
    void read(std::size_t var, std::span<std::byte> bytes);

    /// The same for any contiguous range of plain values that outlives the call, such as a std::vector<double> or a
    /// std::span. A temporary that owns its values does not compile: nothing would be left of it in finish().
    template <Values R>
    void write(std::size_t var, R&& values)
    {
        write(var, std::span<std::byte const>(std::as_bytes(std::span(values))));
    }
    template <MutableValues R>
    void read(std::size_t var, R&& values)
    {
        read(var, std::span<std::byte>(std::as_writable_bytes(std::span(values))));
    }
    /// The same for a variable with a type, which the range must have.
    template <class T, Values R>
    requires std::same_as<std::ranges::range_value_t<R>, T>
    void write(Variable<T> var, R&& values)
    {
        write(var.number(), std::span<std::byte const>(std::as_bytes(std::span(values))));
    }
    template <class T, MutableValues R>
    requires std::same_as<std::ranges::range_value_t<R>, T>
    void read(Variable<T> var, R&& values)
    {
        read(var.number(), std::span<std::byte>(std::as_writable_bytes(std::span(values))));
    }
    /// The same for a part of an array in memory, such as all of it but its ghost cells: the values are taken from
    /// where they lie. Where both have two dimensions or more, the variable and the part have the same counts.
    template <class T>
    requires Value<std::remove_const_t<T>>
    void write(std::size_t var, Section<T> const& section)
    {
        write_section(var, std::as_bytes(section.array()), sizeof(T), section.part());
    }
    template <Value T>
    void read(std::size_t var, Section<T> const& section)
    {
        read_section(var, std::as_writable_bytes(section.array()), sizeof(T), section.part());
    }
    template <class T, class U>
    requires std::same_as<std::remove_const_t<U>, T>
    void write(Variable<T> var, Section<U> const& section) { write(var.number(), section); }
    template <class T>
    void read(Variable<T> var, Section<T> const& section)
    {
        read(var.number(), section);
    }

    template <std::ranges::contiguous_range R>
    requires(!std::ranges::borrowed_range<R>) void write(std::size_t var, R&& values) = delete;
    template <std::ranges::contiguous_range R>
    requires(!std::ranges::borrowed_range<R>) void read(std::size_t var, R&& values) = delete;

    /// Moves all variables. Collective; the buffers may be reused when it returns. Written data is
    /// in the file, and durable after File::sync(). Does what start() and wait() do: of one run, all ranks call
    /// either this or those.
    Moved finish();
    /// Begins to move the variables and returns without waiting for the file. Collective.
    void start();
    /// Moves what can be moved now. Local. True when nothing is left but wait().
    bool progress();
    /// Completes start(). Collective.
    Moved wait();

    /// Bytes of `var` that the last read delivered: less than declared where the file ended. Local.
    [[nodiscard]] std::uint64_t received(std::size_t var) const;
    template <class T>
    [[nodiscard]] std::uint64_t received(Variable<T> var) const
    {
        return received(var.number());
    }

    /// Moves the declared step to `offset` bytes further on in the file from the next run on.
    /// Local; the same on all ranks.
    void rebase(std::int64_t offset);
    /// Runs the step on another file of the same communicator from now on, with this step's plan.
    /// Local; the same on all ranks.
    void retarget(File& file);

    /// How this step will be carried out, in both directions.
    [[nodiscard]] Plan plan() const;

private:
    friend class File;
    friend struct api::Internals;
    explicit Step(std::unique_ptr<declared::StepState> state);
    void write_section(std::size_t var, std::span<std::byte const> array, std::size_t element_size,
                       ArrayPart const& part);
    void read_section(std::size_t var, std::span<std::byte> array, std::size_t element_size, ArrayPart const& part);
    std::unique_ptr<declared::StepState> state_;
};

}  // namespace tapioca

#pragma GCC visibility pop
