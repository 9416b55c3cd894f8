#include "core/host.hpp"

#include <array>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"

namespace tapioca::core {

std::string host_name()
{
    char name[64] = {};
    (void)::gethostname(name, sizeof name - 1);
    return name;
}

std::string boot_id()
{
    std::array<char, 64> text = {};
    Descriptor const file(
        uninterrupted([] { return ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); }));
    auto const bytes = uninterrupted([&] { return ::read(file.get(), text.data(), text.size()); });
    return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::uint64_t random_number()
{
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(::getpid());
    return number;
}

std::string new_memory_name()
{
    return fmt::format("tapioca-{}-{:016x}", ::getpid(), random_number());
}

std::uint64_t digest(std::string_view bytes, std::uint64_t hash)
{
    for (unsigned char const c : bytes) hash = (hash ^ c) * 1099511628211U;
    return hash;
}

}  // namespace tapioca::core
