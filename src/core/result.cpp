#include "core/result.hpp"

namespace tapioca::core {

std::vector<std::byte> pack(Failure const& failure)
{
    int const numbers[2] = {static_cast<int>(failure.code), failure.sys_errno};
    std::vector<std::byte> bytes(sizeof numbers + failure.text.size());
    std::memcpy(bytes.data(), numbers, sizeof numbers);
    std::memcpy(bytes.data() + sizeof numbers, failure.text.data(), failure.text.size());
    return bytes;
}

Failure unpack(std::span<std::byte const> bytes)
{
    int numbers[2] = {};
    std::memcpy(numbers, bytes.data(), sizeof numbers);
    auto const text = bytes.subspan(sizeof numbers);
    return {static_cast<Errc>(numbers[0]), numbers[1], -1,
            std::string(reinterpret_cast<char const*>(text.data()), text.size())};
}

}  // namespace tapioca::core
