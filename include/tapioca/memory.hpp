// Memory: named memory of a tier of this node, such as high-bandwidth memory, DRAM or a local SSD.
//
//     auto field = tapioca::Memory::allocate("ssd:/local/scratch", "field", bytes);   // or "dram", "hbm", "numa:1"
//     field.write(0, values);                                                         // or field.values<double>()
//     field.flush();                                                                  // on the SSD: durable
//
//     auto field = tapioca::Memory::attach("ssd:/local/scratch", "field");            // another process, also later
//     field.read(0, values);
//     field.free();
//
// All calls are local: they make no MPI call and wait for nobody. If they fail, they throw Error. docs/memory.md says
// how long memory lasts and who can see it.
#pragma once

#include <tapioca/cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <tapioca/error.hpp>
#include <tapioca/options.hpp>
#include <tapioca/pattern.hpp>

#pragma GCC visibility push(default)

namespace tapioca {

namespace machine {
class NamedMemory;
}

/// What is known of a tier of this node. Figures are those of the platform file (TAPIOCA_PLATFORM), of hwloc, or
/// assumed; `tapioca info` says which.
struct MemoryTraits {
    std::string tier;                             ///< its name, as Memory::allocate() takes it
    double latency_s = 0;                         ///< seconds of one access
    double write_bandwidth = 0;                   ///< bytes per second
    double read_bandwidth = 0;                    ///< bytes per second
    std::uint64_t capacity_bytes = 0;             ///< bytes that are free now
    Persistency persistency = Persistency::none;  ///< how long its contents last
};

/// Memory of a tier with a name, by which other processes of the same user on this node find it. Every tier has its own
/// names. Movable, not copyable. An object is for one thread at a time, except that threads may write() and read()
/// different bytes at the same time.
///
/// Unless it is freed, memory lasts as long as the tier's persistency says. On a tier with Persistency::none, it is
/// gone when the last object that has it ends; if a process ended without destroying its object, when somebody next
/// looks. On other tiers it stays when the program ends.
class Memory {
public:
    /// Allocates `bytes` bytes (at least one), which are zero. A name is any text of 1 to 64 bytes. Errc::invalid_state
    /// with EEXIST: there is memory of this name, which stays as it is. Errc::no_space: the tier is full; writing never
    /// finds it full later.
    [[nodiscard]] static Memory allocate(std::string const& tier, std::string const& name, std::uint64_t bytes);
    /// Memory that was allocated before, here or in another process. Errc::not_found: there is none of this name.
    /// Errc::permission: another user has put something in its place. Errc::io: it is damaged.
    [[nodiscard]] static Memory attach(std::string const& tier, std::string const& name);
    /// Frees memory without attaching to it, also if it is damaged. Errc::not_found: there is none of this name.
    static void remove(std::string const& tier, std::string const& name);
    /// The names of this user's memory on a tier, in alphabetical order.
    [[nodiscard]] static std::vector<std::string> list(std::string const& tier);
    /// The tiers of this node: those of the platform file, in its order, then others, fastest first. In addition, every
    /// directory is a tier: `ssd:/dir`.
    [[nodiscard]] static std::vector<MemoryTraits> tiers();
    [[nodiscard]] static MemoryTraits traits(std::string const& tier);

    Memory(Memory&&) noexcept;
    Memory& operator=(Memory&&) noexcept;
    /// Lets go of the memory. Does not free it, unless the tier is not persistent and nobody else has it.
    ~Memory();

    /// Copies `bytes` to the memory, starting at its byte `offset`. Other processes see them at once.
    /// Errc::invalid_argument: they do not fit between `offset` and the end; then nothing is written.
    void write(std::uint64_t offset, std::span<std::byte const> bytes);
    /// Copies bytes of the memory, starting at `offset`, to `bytes`. The rules of write() apply.
    void read(std::uint64_t offset, std::span<std::byte> bytes) const;
    /// The same for any contiguous range of plain values. `offset` is in bytes here, too.
    template <std::ranges::contiguous_range R>
    requires Value<std::ranges::range_value_t<R>>
    void write(std::uint64_t offset, R const& values)
    {
        write(offset, std::span<std::byte const>(std::as_bytes(std::span(values))));
    }
    template <std::ranges::contiguous_range R>
    requires Value<std::ranges::range_value_t<R>>
    void read(std::uint64_t offset, R&& values) const
    {
        read(offset, std::span<std::byte>(std::as_writable_bytes(std::span(values))));
    }

    /// The memory itself, for direct access, until this object frees it, ends, or is moved to. A failing device ends
    /// the program with a signal here, where write() and read() throw.
    [[nodiscard]] std::span<std::byte> data();
    /// The same as values of type T, as many as fit.
    template <Value T>
    [[nodiscard]] std::span<T> values()
    {
        auto const bytes = data();
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    /// Makes sure that what was written is in the tier: on a device, it survives a crash of the machine from now on.
    void flush();
    /// Removes the name at once. Other processes that have the memory keep it until they let go of it. Afterwards, all
    /// other calls on this object are errors (Errc::invalid_state), but for is_allocated(). If free() throws, the
    /// memory is still there.
    void free();
    /// False after free(), and if the object was moved from.
    [[nodiscard]] bool is_allocated() const noexcept;

    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::string const& name() const;
    /// What is known of its tier, with the bytes that are free there now.
    [[nodiscard]] MemoryTraits traits() const;

private:
    explicit Memory(std::unique_ptr<machine::NamedMemory> memory);
    std::unique_ptr<machine::NamedMemory> memory_;
};

}  // namespace tapioca

#pragma GCC visibility pop
