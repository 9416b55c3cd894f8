// Memory: the C++ interface to named memory of a tier.
#include <utility>

#include <fmt/core.h>

#include <tapioca/memory.hpp>

#include "machine/machine.hpp"
#include "machine/tier/named.hpp"
#include "settings/settings.hpp"

namespace tapioca {

namespace {

[[noreturn]] void raise(core::Failure const& failure, std::string const& path = "")
{
    throw Error(failure.code, -1, failure.sys_errno, path, "tapioca: " + failure.text);
}

template <class T>
T value_or_raise(core::Result<T> result, std::string const& path = "")
{
    if (!result) raise(result.error(), path);
    return std::move(*result);
}

/// The tiers that TAPIOCA_PLATFORM describes; none if it is not set.
std::vector<machine::TierTraits> described_tiers()
{
    auto const settings = value_or_raise(settings::resolve({}, {}, settings::read_environment()));
    auto const& platform = settings.options.platform;
    if (!platform) return {};
    auto machine = machine::read_platform(*platform).and_then(
        [](machine::PlatformText const& text) { return machine::parse_platform(text.text, text.path); });
    if (!machine) machine.error().text = fmt::format("{}: {}", settings.as_given("platform"), machine.error().text);
    return value_or_raise(std::move(machine)).tiers;
}

std::vector<machine::TierTraits> tiers_of_this_node()
{
    return machine::tiers_here(described_tiers());
}

std::unique_ptr<machine::Tier> tier_called(std::string const& name)
{
    return value_or_raise(machine::choose_tier(name, tiers_of_this_node()).and_then(machine::make_tier));
}

MemoryTraits told(machine::TierTraits const& tier)
{
    return {tier.name,
            tier.latency_s.value,
            tier.write_bandwidth.value,
            tier.read_bandwidth.value,
            machine::free_bytes(tier),
            tier.persistency};
}

machine::NamedMemory& alive(std::unique_ptr<machine::NamedMemory> const& memory, char const* call)
{
    if (!memory) raise({Errc::invalid_state, 0, -1, fmt::format("{}: the memory was freed or moved from", call)});
    return *memory;
}

void check(core::Status const& status, machine::NamedMemory const& memory)
{
    if (!status) raise(status.error(), memory.path());
}

}  // namespace

Memory Memory::allocate(std::string const& tier, std::string const& name, std::uint64_t bytes)
{
    auto const on = tier_called(tier);
    auto made = value_or_raise(machine::NamedMemory::create(*on, name, bytes), on->directory());
    return Memory(std::make_unique<machine::NamedMemory>(std::move(made)));
}

Memory Memory::attach(std::string const& tier, std::string const& name)
{
    auto const on = tier_called(tier);
    auto found = value_or_raise(machine::NamedMemory::attach(*on, name), on->directory());
    return Memory(std::make_unique<machine::NamedMemory>(std::move(found)));
}

void Memory::remove(std::string const& tier, std::string const& name)
{
    auto const on = tier_called(tier);
    if (auto const status = machine::remove_memory(*on, name); !status) raise(status.error(), on->directory());
}

std::vector<std::string> Memory::list(std::string const& tier)
{
    auto const on = tier_called(tier);
    return value_or_raise(machine::list_memory(*on), on->directory());
}

std::vector<MemoryTraits> Memory::tiers()
{
    std::vector<MemoryTraits> all;
    for (auto const& tier : tiers_of_this_node()) all.push_back(told(tier));
    return all;
}

MemoryTraits Memory::traits(std::string const& tier)
{
    return told(tier_called(tier)->traits());
}

Memory::Memory(std::unique_ptr<machine::NamedMemory> memory) : memory_(std::move(memory)) {}
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&& other) noexcept
{
    Memory old(std::move(other));
    std::swap(memory_, old.memory_);
    return *this;
}
Memory::~Memory() = default;

void Memory::write(std::uint64_t offset, std::span<std::byte const> bytes)
{
    auto const& memory = alive(memory_, "write");
    check(memory.write(offset, bytes), memory);
}

void Memory::read(std::uint64_t offset, std::span<std::byte> bytes) const
{
    auto const& memory = alive(memory_, "read");
    check(memory.read(offset, bytes), memory);
}

std::span<std::byte> Memory::data()
{
    return alive(memory_, "data").data();
}

void Memory::flush()
{
    auto const& memory = alive(memory_, "flush");
    check(memory.flush(), memory);
}

void Memory::free()
{
    auto& memory = alive(memory_, "free");
    check(memory.free(), memory);
    memory_.reset();
}

bool Memory::is_allocated() const noexcept
{
    return memory_ != nullptr;
}

std::uint64_t Memory::bytes() const
{
    return alive(memory_, "bytes").data().size();
}

std::string const& Memory::name() const
{
    return alive(memory_, "name").name();
}

MemoryTraits Memory::traits() const
{
    return told(alive(memory_, "traits").traits());
}

}  // namespace tapioca
