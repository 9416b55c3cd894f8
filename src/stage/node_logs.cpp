#include "stage/node_logs.hpp"

#include <algorithm>

namespace tapioca::stage {

namespace {

Counters const& counters_of(MappedFile const& first_page)
{
    return *reinterpret_cast<Counters const*>(first_page.data() + sizeof(Head));
}

}  // namespace

bool NodeLogs::find_pages()
{
    first_pages_.resize(logs_.size());
    bool all = true;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
        auto& page = first_pages_[i];
        if (logs_[i].own || page.data()) continue;
        auto const file = open_private(logs_[i].place.meta(), false);
        auto mapped = file ? MappedFile::of(file->get(), 0, head_bytes, false) : tl::unexpected(file.error());
        if (mapped)
            page = std::move(*mapped);
        else
            all = false;
    }
    return all;
}

NodeLogs::LogState NodeLogs::state()
{
    if (!find_pages()) return {0, pattern::no_offset};  // the whole file, since the logs' ranges are unknown
    LogState state{pattern::no_offset, 0};
    for (auto const& page : first_pages_) {
        if (!page.data()) continue;
        auto const& counters = counters_of(page);
        state.begin = std::min(state.begin, __atomic_load_n(&counters.begin, __ATOMIC_ACQUIRE));
        state.end = std::max(state.end, __atomic_load_n(&counters.end, __ATOMIC_ACQUIRE));
    }
    return state;
}

std::uint64_t NodeLogs::entries()
{
    if (!find_pages()) return UINT64_MAX;
    std::uint64_t sum = 0;
    for (auto const& page : first_pages_)
        if (page.data()) sum += __atomic_load_n(&counters_of(page).appended, __ATOMIC_ACQUIRE);
    return sum;
}

core::Result<std::uint64_t> NodeLogs::update(Surface& surface, std::uint32_t rank)
{
    if (!find_pages()) return core::fail(Errc::io, "a log of another rank of this node cannot be opened");
    known_.resize(logs_.size(), UINT64_MAX);
    std::uint64_t looked_at = 0;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
        auto const& log = logs_[i];
        if (log.own) continue;
        auto const appended = __atomic_load_n(&counters_of(first_pages_[i]).appended, __ATOMIC_ACQUIRE);
        if (known_[i] == appended) continue;
        for (auto const& user : log.users) {
            if (user.rank == rank) continue;
            auto const read = [&](LogContent::Mark const& mark) -> core::Result<std::shared_ptr<LogContent>> {
                auto content = std::make_shared<LogContent>();
                auto status = content->add(log.place, {user.rank}, mark.log);
                bool const goes_on = status && content->continued(log.place) > 0 && is_ours(user.beside.meta());
                if (goes_on) status = content->add(user.beside, {user.rank}, mark.beside);
                if (!status) return tl::unexpected(status.error());
                return content;
            };
            auto const news = surface.update(user.rank, read);
            if (!news) return news;
            looked_at += *news;
        }
        known_[i] = appended;
    }
    return looked_at;
}

void NodeLogs::begin_anew()
{
    passed_.clear();
    known_.clear();
}

core::Status NodeLogs::add_to(LogContent& content) const
{
    for (auto const& log : logs_) {
        if (auto status = content.add(log.place); !status) return status;
        if (content.continued(log.place) == 0) continue;
        for (auto const& user : log.users)
            if (is_ours(user.beside.meta()))
                if (auto status = content.add(user.beside); !status) return status;
    }
    return {};
}

core::Status NodeLogs::add_others_to(LogContent& content, std::uint32_t rank, std::uint64_t epoch)
{
    if (epoch == UINT64_MAX) return {};
    auto const add = [&](LogPlace const& place) {
        return content.add_others(place, rank, epoch, passed_[place.meta()]);
    };
    for (auto const& log : logs_) {
        if (log.own) continue;
        if (auto status = add(log.place); !status) return status;
        if (content.continued(log.place) == 0) continue;
        for (auto const& user : log.users)
            if (is_ours(user.beside.meta()))
                if (auto status = add(user.beside); !status) return status;
    }
    return {};
}

}  // namespace tapioca::stage
