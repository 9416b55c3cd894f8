#include "deal.hpp"

#include <map>
#include <vector>

namespace recover {

namespace stage = tapioca::stage;
namespace core = tapioca::core;

namespace {

core::Result<LogView> try_to_look(stage::Sought const& sought, stage::Marker const& marker)
{
    auto const meta = stage::open_private(sought.place.meta(), false);
    if (!meta) return tl::unexpected(meta.error());
    auto const data = stage::open_private(sought.place.data(), false);
    if (!data) return tl::unexpected(data.error());
    if (stage::is_held(*meta)) return LogView::in_use;
    std::vector<std::byte> first(stage::head_bytes);
    if (auto status = stage::read_all(meta->get(), 0, first); !status) return tl::unexpected(status.error());
    auto const head = stage::read_head(first, stage::meta_magic);
    if (!head) return tl::unexpected(head.error());
    if (auto status = stage::check_belongs(sought, *head, marker); !status) return tl::unexpected(status.error());
    return LogView::here;
}

}  // namespace

LogView look(stage::Sought const& sought, stage::Marker const& marker, std::string& why)
{
    if (!stage::is_here(sought.place)) return LogView::absent;
    auto const view = try_to_look(sought, marker);
    if (view) return *view;
    auto const& text = view.error().text;
    bool const has_path = text.find(sought.place.directory) != std::string::npos;
    why = has_path ? text : sought.place.meta() + ": " + text;
    return LogView::refused;
}

std::vector<Dealt> deal(std::vector<stage::Sought> const& logs, std::vector<LogView> const& views, int processes)
{
    std::vector<std::uint64_t> load(static_cast<std::size_t>(processes));
    std::vector<Dealt> dealt(logs.size());
    std::map<std::uint32_t, int> first;  // the process that takes a rank's log also takes its continuation
    for (std::size_t log = 0; log < logs.size(); ++log)
        for (std::size_t i = 0; i < logs[log].ranks.size(); ++i) {
            int taker = -1;
            for (int p = 0; p < processes; ++p) {
                bool const sees = views[static_cast<std::size_t>(p) * logs.size() + log] == LogView::here;
                auto const before = first.find(logs[log].ranks[i]);
                if (sees && before != first.end() && before->second == p) {
                    taker = p;
                    break;
                }
                if (sees && (taker < 0 || load[static_cast<std::size_t>(p)] < load[static_cast<std::size_t>(taker)]))
                    taker = p;
            }
            if (taker < 0) break;
            ++load[static_cast<std::size_t>(taker)];
            dealt[log].takers.push_back(taker);
            first.emplace(logs[log].ranks[i], taker);
        }
    return dealt;
}

}  // namespace recover
