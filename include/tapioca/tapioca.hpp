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
// If a collective call fails, it throws the same tapioca::Error on every rank. docs/collectives.md says which calls are
// collective, when buffers may be reused, and what is durable.
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
struct Internals;  ///< gives the C interface access to the two classes above
}

enum class Mode {
    create,  ///< make the file, or empty an existing one; write and read
    update,  ///< an existing file; write and read
    read,    ///< an existing file; read only
};

/// What a collective step did on this rank.
struct Moved {
    std::uint64_t bytes = 0;             ///< bytes of this rank's variables, written or read before the end of the file
    std::uint64_t overlapped_bytes = 0;  ///< bytes that this rank drained between start() and wait()
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
    /// Opens `path`. Collective over `comm`: all ranks pass the same arguments. Rank 0 creates the file. On several
    /// nodes, the first rank of each node also opens it here; all other ranks open it at their first I/O. It is an
    /// error if a rank finds a file other than that of rank 0, here or later (docs/collectives.md). While the file is
    /// open, `comm` may be freed and the working directory may change.
    static File open(MPI_Comm comm, std::filesystem::path const& path, Mode mode, Options const& options = {},
                     MPI_Info info = MPI_INFO_NULL);

    File(File&&) noexcept;
    File& operator=(File&&) noexcept;
    /// Releases this rank's descriptor without communication. Only close() reports errors.
    ~File();

    /// Plans a step for `pattern`. Collective. The step can be run any number of times.
    [[nodiscard]] Step declare(Pattern const& pattern);
    /// Writes everything in the log of a staged file to the file (docs/stage.md). For other files, there is nothing to
    /// do. Collective.
    void flush();
    /// Brings everything written so far to the file system: from the log of a staged file, and from the tiers of the
    /// nodes if they are the file's target (docs/target.md). For other files, there is nothing to do. A file on tiers
    /// must have been opened for writing, and not while another handle or job was writing to it. Collective.
    void drain();
    /// Makes everything written so far durable. Collective.
    void sync();
    /// The current size of the file in bytes. Collective.
    [[nodiscard]] std::uint64_t size();
    /// Closes the file and writes the report if one was requested. Collective. The file is closed even if close()
    /// throws, except while a step is under way. It is an error if variables of a step were supplied and the step was
    /// never run.
    void close();
    [[nodiscard]] bool is_open() const noexcept;

private:
    friend class Step;
    friend struct api::Internals;
    explicit File(std::shared_ptr<declared::FileState> state);
    std::shared_ptr<declared::FileState> state_;
};

/// A declared step. To run it, supply a buffer for each variable with write() or read() and then call finish(); repeat
/// this with new buffers for the next run. Only one step of a communicator can be in flight at a time.
class Step {
public:
    Step(Step&&) noexcept;
    Step& operator=(Step&&) noexcept;
    ~Step();

    /// Supplies the bytes of variable `var` that are to be written. Local. `bytes` must stay valid and unchanged until
    /// finish() or wait() returns. A variable of no bytes need not be supplied. Mistakes (a wrong size or number, a
    /// variable that is supplied twice) are thrown by finish() or wait(), on every rank.
    void write(std::size_t var, std::span<std::byte const> bytes);
    /// Supplies the buffer that receives variable `var`. Local. The rules of write() apply.
    void read(std::size_t var, std::span<std::byte> bytes);

    /// The same for any contiguous range of plain values that outlives the call, such as a std::vector<double> or a
    /// std::span. A temporary that owns its values does not compile, since the values would be gone before finish().
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
    /// The same for a variable with a type. The range must have values of that type.
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
    /// The same for a part of an array in memory, such as everything except its ghost cells. The values are moved in
    /// place. If both the variable and the part have two or more dimensions, their counts must be equal.
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

    /// Moves all variables. Collective. When it returns, the buffers may be reused, and written data is in the file; it
    /// is durable after File::sync(). finish() does the work of start() and wait(). In one run, either all ranks call
    /// finish(), or all call start() and wait().
    Moved finish();
    /// Begins to move the variables and returns without waiting for the file. Collective.
    void start();
    /// Moves what can be moved now. Local. Returns true when only wait() is left to do.
    bool progress();
    /// Completes start(). Collective.
    Moved wait();

    /// The number of bytes of `var` that the last read delivered: fewer than declared if the file ended before. Local.
    [[nodiscard]] std::uint64_t received(std::size_t var) const;
    template <class T>
    [[nodiscard]] std::uint64_t received(Variable<T> var) const
    {
        return received(var.number());
    }

    /// From the next run on, `offset` is added to all declared offsets of the step. Local; the same on all ranks.
    void rebase(std::int64_t offset);
    /// From the next run on, the step runs on another file of the same communicator, with the same plan. Local; the
    /// same on all ranks.
    void retarget(File& file);

    /// How this step will be carried out, for writing and for reading.
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
