#include "machine/learnt.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"

namespace tapioca::machine {

namespace {

constexpr std::string_view header = "tapioca learnt 1";
constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// FNV-1a: a line that was cut off or mixed with another does not match its sum.
std::uint32_t sum_of(std::string_view text)
{
    std::uint32_t sum = 2166136261U;
    for (char const c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    return sum;
}

/// Returns the text up to the next `separator` and removes it from `rest`.
std::string_view cut(std::string_view& rest, char separator)
{
    auto const at = rest.find(separator);
    auto const part = rest.substr(0, at);
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
    return part;
}

template <class Number, class... Base>
bool read_number(std::string_view text, Number& number, Base... base)
{
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

core::Result<Learnt> Learnt::parse(std::string_view text)
{
    Learnt learnt;
    if (text.empty()) return learnt;
    if (cut(text, '\n') != header) return core::fail(Errc::invalid_argument, "it is not a file of TAPIOCA_LEARN");
    while (!text.empty()) {
        auto line = cut(text, '\n');
        if (line == header) continue;  // of a job that made the file at the same time
        std::uint32_t sum = 0;
        bool good = read_number(cut(line, ' '), sum, 16) && sum == sum_of(line);
        Lesson way;
        auto taken = cut(line, ' ');
        good = good && read_number(cut(taken, ':'), way.aggregators) && way.aggregators >= -1;
        good = good && (taken.empty() || (read_number(taken, way.buffer_bytes) && way.aggregators > 0));
        good = good && read_number(cut(line, ' '), way.seconds_per_byte) && std::isfinite(way.seconds_per_byte) &&
               way.seconds_per_byte > 0 && !line.empty();
        if (good)
            learnt.ways_.insert_or_assign(std::string(line), way);
        else
            ++learnt.damaged_;
    }
    return learnt;
}

std::string Learnt::line(std::string const& key, Lesson const& way)
{
    auto const buffers = way.buffer_bytes > 0 ? fmt::format(":{}", way.buffer_bytes) : "";
    auto const text = fmt::format("{}{} {:.4g} {}", way.aggregators, buffers, way.seconds_per_byte, key);
    return fmt::format("{:08x} {}\n", sum_of(text), text);
}

std::string Learnt::first_line()
{
    return fmt::format("{}\n", header);
}

std::optional<Learnt::Lesson> Learnt::find(std::string const& key) const
{
    auto const at = ways_.find(key);
    return at == ways_.end() ? std::nullopt : std::optional(at->second);
}

core::Result<std::string> read_learnt(std::string const& path)
{
    core::Descriptor const file(
        core::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!file && errno == ENOENT) return std::string();
    if (!file) return core::fail_errno(errno, "opening " + path);
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
        return core::fail(Errc::invalid_argument, path + ": it is not a plain file");
    std::string text(std::min(most_bytes, static_cast<std::size_t>(found.st_size)), '\0');
    auto const got = core::uninterrupted([&] { return ::read(file.get(), text.data(), text.size()); });
    if (got < 0) return core::fail_errno(errno, "reading " + path);
    text.resize(static_cast<std::size_t>(got));
    return text;
}

core::Status add_learnt(std::string const& path, std::string const& lines)
{
    core::Descriptor const file(
        core::uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666); }));
    if (!file) return core::fail_errno(errno, "opening " + path);
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, "looking at " + path);
    auto const text = (found.st_size == 0 ? Learnt::first_line() : std::string()) + lines;
    auto const put = core::uninterrupted([&] { return ::write(file.get(), text.data(), text.size()); });
    if (put < 0) return core::fail_errno(errno, "writing " + path);
    if (static_cast<std::size_t>(put) != text.size()) return core::fail_errno(ENOSPC, "writing " + path);
    return {};
}

}  // namespace tapioca::machine
