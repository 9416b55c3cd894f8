#include "machine/stripes.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace tapioca::machine {

namespace {

using RawBytes = std::span<std::byte const>;

// Lustre's lustre_user.h: lov_user_md_v1 and _v3, lov_comp_md_v1 and its entries.
constexpr std::uint32_t magic_v1 = 0x0BD10BD0;
constexpr std::uint32_t magic_v3 = 0x0BD30BD0;
constexpr std::uint32_t magic_composite = 0x0BD60BD0;
constexpr std::uint32_t pattern_raid0 = 0x001;
constexpr std::uint32_t pattern_elsewhere = 0x100 | 0x400;       // on the metadata server, foreign
constexpr std::uint32_t entry_unusable = 0x001 | 0x040 | 0x080;  // stale, extension, parity
constexpr std::size_t composite_bytes = 32;
constexpr std::size_t entry_bytes = 48;
constexpr std::int64_t least_stripe = 64 * 1024;
constexpr std::uint16_t all_servers = 0xFFFF;
constexpr int delay_create = 0100000000 | O_NOCTTY | FASYNC;  // O_LOV_DELAY_CREATE, of older and of newer versions
constexpr unsigned long set_stripe = _IOW('f', 154, long);    // LL_IOC_LOV_SETSTRIPE

// CephFS's smallest unit, and its default object size.
constexpr std::int64_t ceph_object = 4 << 20;

// BeeGFS's beegfs_ioctl.h: BEEGFS_IOC_GET_STRIPEINFO.
struct BeegfsStripes {
    unsigned pattern;
    unsigned chunk_bytes;
    std::uint16_t targets;
};
constexpr unsigned long beegfs_get_stripes = _IOR('f', 25, BeegfsStripes);

/// The number at `at`, if it is there completely.
template <class Number>
std::optional<Number> number_at(RawBytes bytes, std::size_t at)
{
    if (at > bytes.size() || bytes.size() - at < sizeof(Number)) return std::nullopt;
    Number value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

template <class Number>
void put(std::span<std::byte> bytes, std::size_t at, Number value)
{
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::optional<Stripes> parse_plain(RawBytes layout)
{
    auto const magic = number_at<std::uint32_t>(layout, 0);
    auto const pattern = number_at<std::uint32_t>(layout, 4);
    auto const bytes = number_at<std::uint32_t>(layout, 24);
    auto const count = number_at<std::uint16_t>(layout, 28);
    if (!count || (magic != magic_v1 && magic != magic_v3)) return std::nullopt;
    if ((*pattern & pattern_elsewhere) != 0 || *bytes == 0 || *bytes % least_stripe != 0) return std::nullopt;
    return Stripes{*bytes, *count == all_servers ? 0 : *count};
}

std::optional<Stripes> parse_composite(RawBytes layout)
{
    std::optional<Stripes> widest;
    std::uint64_t most = 0;
    auto const entries = number_at<std::uint16_t>(layout, 14).value_or(0);
    for (std::size_t i = 0; i < entries; ++i) {
        auto const at = composite_bytes + i * entry_bytes;
        auto const flags = number_at<std::uint32_t>(layout, at + 4);
        auto const begin = number_at<std::uint64_t>(layout, at + 8);
        auto const end = number_at<std::uint64_t>(layout, at + 16);
        auto const offset = number_at<std::uint32_t>(layout, at + 24);
        auto const size = number_at<std::uint32_t>(layout, at + 28);
        if (!size) break;
        if ((*flags & entry_unusable) != 0 || *end <= *begin || *end - *begin <= most) continue;
        if (*offset > layout.size() || *size > layout.size() - *offset) continue;
        if (auto const stripes = parse_plain(layout.subspan(*offset, *size))) {
            widest = stripes;
            most = *end - *begin;
        }
    }
    return widest;
}

std::optional<Stripes> lustre_stripes(int fd)
{
    std::vector<std::byte> layout(64 * 1024);  // attributes are not larger
    auto const size = ::fgetxattr(fd, "lustre.lov", layout.data(), layout.size());
    if (size <= 0) return std::nullopt;
    return parse_lustre_layout(RawBytes(layout).first(static_cast<std::size_t>(size)));
}

std::int64_t attribute(int fd, char const* name)
{
    std::array<char, 32> text{};
    auto const size = ::fgetxattr(fd, name, text.data(), text.size());
    std::int64_t value = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, value);
    return value;
}

/// Returns 0, or the error with which the file system refuses.
int ask(int fd, std::string const& file_system, Stripes wanted)
{
    if (file_system == "lustre") {
        auto const layout = lustre_layout(wanted);
        if (!layout) return EINVAL;
        return ::ioctl(fd, set_stripe, layout->data()) == 0 ? 0 : errno;
    }
    if (file_system == "ceph") {
        auto const layout = ceph_layout(wanted);
        return ::fsetxattr(fd, "ceph.file.layout", layout.data(), layout.size(), 0) == 0 ? 0 : errno;
    }
    return EOPNOTSUPP;
}

}  // namespace

std::optional<Stripes> parse_lustre_layout(std::span<std::byte const> layout)
{
    return number_at<std::uint32_t>(layout, 0) == magic_composite ? parse_composite(layout) : parse_plain(layout);
}

core::Result<std::array<std::byte, 32>> lustre_layout(Stripes wanted)
{
    if (wanted.bytes % least_stripe != 0 || wanted.bytes > UINT32_MAX || wanted.count >= all_servers)
        return core::fail_errno(EINVAL, "stripes");
    std::array<std::byte, 32> layout{};
    put(layout, 0, magic_v1);
    put(layout, 4, pattern_raid0);
    put(layout, 24, static_cast<std::uint32_t>(wanted.bytes));
    put(layout, 28, static_cast<std::uint16_t>(wanted.count));
    put(layout, 30, std::uint16_t{0xFFFF});  // first server: any
    return layout;
}

std::optional<Stripes> ceph_stripes(std::int64_t unit, std::int64_t count, std::int64_t object_bytes)
{
    if (unit <= 0 || count <= 0 || count > INT32_MAX || object_bytes < unit) return std::nullopt;
    if (count == 1) return Stripes{object_bytes, 0};
    return Stripes{unit, static_cast<int>(count)};
}

std::string ceph_layout(Stripes wanted)
{
    std::string text;
    if (wanted.bytes > 0)
        text += fmt::format("stripe_unit={} object_size={} ", wanted.bytes,
                            ceph_object % wanted.bytes == 0 ? ceph_object : wanted.bytes);
    if (wanted.count > 0) text += fmt::format("stripe_count={} ", wanted.count);
    if (!text.empty()) text.pop_back();
    return text;
}

bool has_stripes(std::string const& file_system)
{
    return file_system == "lustre" || file_system == "ceph" || file_system == "beegfs" || file_system == "gpfs" ||
           file_system == "orangefs";
}

std::optional<Stripes> stripes_of(int fd, std::string const& file_system)
{
    if (file_system == "lustre") return lustre_stripes(fd);
    if (file_system == "ceph")
        return ceph_stripes(attribute(fd, "ceph.file.layout.stripe_unit"),
                            attribute(fd, "ceph.file.layout.stripe_count"),
                            attribute(fd, "ceph.file.layout.object_size"));
    BeegfsStripes stripes{};
    if (file_system == "beegfs" && ::ioctl(fd, beegfs_get_stripes, &stripes) == 0 && stripes.chunk_bytes > 0)
        return Stripes{stripes.chunk_bytes, stripes.targets};
    return std::nullopt;
}

std::string create_striped(std::string const& path, Stripes wanted)
{
    // Lustre chooses the stripes when a file is opened for writing, unless it is told to wait; other file systems
    // ignore that flag.
    int const fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | delay_create, 0666);
    if (fd < 0) return errno == EEXIST ? "the file is there already and keeps its stripes" : "";
    auto const storage = storage_of(fd);
    auto const name = storage ? storage->name : std::string("unknown");
    std::string why;
    if (!has_stripes(name))
        why = fmt::format("file system {} has no stripes to set", name);
    else if (int const error = ask(fd, name, wanted); error != 0)
        why = fmt::format("file system {} does not set the stripes: {}", name, std::strerror(error));
    ::close(fd);
    return why;
}

void enter(Storage& storage, Stripes stripes)
{
    storage.stripe_bytes = stripes.bytes;
    storage.stripe_count = stripes.count;
    if (stripes.bytes > 0) storage.block_bytes = std::min(storage.block_bytes, stripes.bytes & -stripes.bytes);
}

}  // namespace tapioca::machine
