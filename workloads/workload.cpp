#include "workloads/workload.hpp"

#include <fmt/core.h>

#include "core/units.hpp"

namespace workloads {

using tapioca::Errc;
namespace core = tapioca::core;

namespace {

std::vector<std::string> split(std::string const& text, char separator)
{
    std::vector<std::string> parts(1);
    for (char const c : text)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

}  // namespace

tapioca::Pattern RankPart::pattern() const
{
    tapioca::Pattern pattern;
    if (!extents.empty()) {
        pattern.add(extents);
        return pattern;
    }
    for (auto const& [offset, length, stride, count] : variables) {
        if (count == 1)
            pattern.add({{offset, length}});
        else
            pattern.add(tapioca::Subarray{{count, stride}, {0, offset}, {count, length}, {}, 1, 0});
    }
    return pattern;
}

core::Result<Workload> from_text(std::string const& text, int ranks)
{
    auto const colon = text.find(':');
    auto const name = text.substr(0, colon);
    std::vector<std::string_view> names;
    for (auto const* const kind : kinds()) {
        if (!kind->from_words) continue;
        names.push_back(kind->name);
        if (kind->name != name) continue;
        auto const words = split(colon == std::string::npos ? "" : text.substr(colon + 1), ',');
        auto workload = kind->from_words(words, ranks);
        if (!workload) workload.error().text = fmt::format("{}: {}", text, workload.error().text);
        return workload;
    }
    return core::fail(Errc::invalid_argument, fmt::format("{}: did you mean {}?", text, core::nearest(name, names)));
}

std::string texts()
{
    constexpr std::size_t width = 100;
    std::vector<std::string_view> parts;
    for (auto const* const kind : kinds())
        if (kind->from_words) parts.push_back(kind->text);
    std::string all;
    std::size_t column = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        bool const wraps = column > 0 && column + parts[i].size() > width;
        if (wraps) column = 0;
        auto const part = fmt::format("{}{}{}",
                                      i == 0  ? ""
                                      : wraps ? "\n"
                                              : " ",
                                      parts[i],
                                      i + 2 < parts.size()    ? ","
                                      : i + 2 == parts.size() ? ", or"
                                                              : "");
        column += part.size();
        all += part;
    }
    return all;
}

std::string benchmarked(bool whole_files, std::string_view before_last)
{
    std::vector<std::string_view> names;
    for (auto const* const kind : kinds())
        if (kind->options && kind->whole_files == whole_files) names.push_back(kind->name);
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i)
        all += fmt::format("{}{}",
                           i == 0                 ? ""
                           : i + 1 < names.size() ? ", "
                                                  : fmt::format(" {} ", before_last),
                           names[i]);
    return all;
}

}  // namespace workloads
