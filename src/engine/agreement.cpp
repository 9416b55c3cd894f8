#include "engine/agreement.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/network_context.hpp"

namespace tapioca::engine {

namespace {

/// Places in the tally, which collects what the ranks announce as a step begins.
enum TallyIndex : std::size_t { says_write, says_read, says_spoiled };

/// The message, as one number, by which a node tells the others that a step was abandoned.
std::uint64_t to_number(std::uint64_t agreements, Exchange::AbandonReason const& reason)
{
    return (agreements & UINT32_MAX) | static_cast<std::uint64_t>(reason.code) << 32 |
           static_cast<std::uint64_t>(reason.rank + 1) << 40;
}

/// What a rank declares. `failed` identifies the lowest rank that failed, as in agree(); 0: none.
struct RankDeclaration {
    pattern::Summary summary;
    std::int64_t failed;
};

void add_parts(void* in, void* in_out, int* count, MPI_Datatype* /*type*/)
{
    for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i) {
        RankDeclaration one;
        RankDeclaration total;
        std::memcpy(&one, static_cast<std::byte*>(in) + i * sizeof one, sizeof one);
        auto* const at = static_cast<std::byte*>(in_out) + i * sizeof total;
        std::memcpy(&total, at, sizeof total);
        total.summary.add(one.summary);
        total.failed = std::max(total.failed, one.failed);
        std::memcpy(at, &total, sizeof total);
    }
}

}  // namespace

Agreement::Agreement(comm::Team const& team, Exchange& exchange, comm::MpiMessages& messages, bool crowded)
    : team_(team), exchange_(exchange), messages_(messages)
{
    wait_policy_.crowded = crowded;
    if (several_nodes())
        wait_policy_.poll = [this] { return poll(); };
    else
        wait_policy_.nudge = [this] { comm::nudge(team_.all()); };
    wait_policy_.activity = [this] { return exchange_.activity(); };
}

void Agreement::meet()
{
    if (!several_nodes()) (void)agree({});
}

core::Status Agreement::agree(core::Status const& local)
{
    if (!several_nodes()) return exchange_.agree(local, wait_policy_);
    if (abandoned()) return exchange_.lost();
    agreement_->start_attended(team_.all(), {local ? 0 : team_.size() - team_.rank()}, tag_agreed);
    if (!come_to_agree()) return exchange_.lost();
    auto const failed = agreement_->values()[0];
    return failed == 0 ? core::Status() : comm::spread(team_.all(), team_.size() - static_cast<int>(failed), local);
}

/// Waits for the agreement that was started. Returns false if it can no longer be reached.
bool Agreement::come_to_agree()
{
    // An agreement that all ranks have started will complete, even if a rank that has already seen its result has
    // abandoned a step since.
    wait_until(wait_policy_, "the other ranks to arrive",
               [&] { return agreement_->done() || exchange_.abandoned_after(agreements_); });
    if (!agreement_->done()) return false;
    ++agreements_;
    return true;
}

core::Status Agreement::least(std::span<std::int64_t> values)
{
    if (!several_nodes())
        return exchange_.share(std::as_bytes(values), wait_policy_,
                               [&](int /*rank*/, std::span<std::byte const> theirs) {
                                   for (std::size_t i = 0; i < values.size(); ++i) {
                                       std::int64_t value = 0;
                                       std::memcpy(&value, theirs.data() + i * sizeof value, sizeof value);
                                       values[i] = std::min(values[i], value);
                                   }
                               });
    if (abandoned()) return exchange_.lost();
    std::vector<std::int64_t> mirrored;  // the maximum of the complements is the complement of the minimum
    for (auto const value : values) mirrored.push_back(~value);
    agreement_->start_attended(team_.all(), std::move(mirrored), tag_agreed);
    if (!come_to_agree()) return exchange_.lost();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = ~agreement_->values()[i];
    return {};
}

core::Result<pattern::Summary> Agreement::sum(pattern::Summary const& mine, core::Status const& local)
{
    if (several_nodes()) {
        if (abandoned()) return tl::unexpected(exchange_.lost().error());
        RankDeclaration part = {mine, local ? 0 : team_.size() - team_.rank()};
        team_.count(sizeof part);
        agreement_->start(team_.all(), std::as_bytes(std::span(&part, 1)), add_parts);
        if (!come_to_agree()) return tl::unexpected(exchange_.lost().error());
        std::memcpy(&part, agreement_->bytes().data(), sizeof part);
        if (part.failed == 0) return part.summary;
        return tl::unexpected(comm::spread(team_.all(), team_.size() - static_cast<int>(part.failed), local).error());
    }
    auto const* const bytes = reinterpret_cast<std::byte const*>(&mine);
    std::vector<std::byte> mail(bytes, bytes + sizeof mine);
    if (!local) {
        auto const failure = core::pack(local.error());
        mail.insert(mail.end(), failure.begin(), failure.end());
    }
    core::Result<pattern::Summary> total;
    auto const shared = exchange_.share(mail, wait_policy_, [&](int rank, std::span<std::byte const> theirs) {
        if (!total) return;
        pattern::Summary summary;
        std::memcpy(&summary, theirs.data(), sizeof summary);
        total->add(summary);
        if (theirs.size() == sizeof summary) return;
        total = tl::unexpected(core::unpack(theirs.subspan(sizeof summary)));
        total.error().rank = rank;
    });
    if (!shared) return tl::unexpected(shared.error());
    return total;
}

core::Status Agreement::sum(std::span<std::uint64_t> values)
{
    if (several_nodes()) {
        auto const total = team_.sum({values.begin(), values.end()});
        std::copy(total.begin(), total.end(), values.begin());
        return {};
    }
    constexpr auto at_once = Exchange::most_mail / sizeof(std::uint64_t);
    core::Status status;
    for (std::size_t done = 0; done < values.size() && status; done += at_once) {
        auto const some = values.subspan(done, std::min(at_once, values.size() - done));
        std::vector<std::uint64_t> const mine(some.begin(), some.end());
        std::fill(some.begin(), some.end(), 0);
        status =
            exchange_.share(std::as_bytes(std::span(mine)), wait_policy_, [&](int, std::span<std::byte const> theirs) {
                for (std::size_t i = 0; i < some.size(); ++i) {
                    std::uint64_t value = 0;
                    std::memcpy(&value, theirs.data() + i * sizeof value, sizeof value);
                    some[i] += value;
                }
            });
    }
    return status;
}

core::Result<std::string> Agreement::broadcast(std::string text)
{
    if (several_nodes()) {
        // No step can have been abandoned before the first agreement.
        if (agreements_ > 0)
            if (auto const here = agree({}); !here) return tl::unexpected(here.error());
        return comm::broadcast(team_.all(), std::move(text));
    }
    // The text goes in pieces that fit into a mailbox; a short piece is the last. MPI is not used, because this may be
    // a thread that must not call MPI.
    constexpr std::size_t most = Exchange::most_mail - 1;
    std::string all;
    for (bool more = true; more;) {
        auto const piece = team_.rank() == 0 ? text.substr(all.size(), most) : std::string();
        auto const shared = exchange_.share(std::as_bytes(std::span(piece)), wait_policy_,
                                            [&](int rank, std::span<std::byte const> bytes) {
                                                if (rank != 0) return;
                                                all.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
                                                more = bytes.size() == most;
                                            });
        if (!shared) return tl::unexpected(shared.error());
    }
    return all;
}

void Agreement::announce(std::uint64_t step, Announcement mine, bool spoiled)
{
    if (!several_nodes()) return exchange_.announce(step, mine);
    tally_->start(team_.all(), {mine == Announcement::write, mine == Announcement::read, spoiled});
}

void Agreement::take_as_announced(std::uint64_t step, Announcement all)
{
    if (!several_nodes()) return exchange_.announce(step, all);
    tally_->set({all == Announcement::write, all == Announcement::read, 0});
}

Agreement::Announcement Agreement::announced(std::uint64_t step)
{
    if (!several_nodes()) return exchange_.announced(step);
    if (!tally_->done()) return Announcement::unknown;
    return tally_->values()[says_read]    ? Announcement::read
           : tally_->values()[says_write] ? Announcement::write
                                          : Announcement::none;
}

void Agreement::all_began()
{
    if (several_nodes())
        wait_until(wait_policy_, "the other ranks to start the step", [&] { return tally_->done() || abandoned(); });
}

bool Agreement::spoiled() const
{
    return tally_->values()[says_spoiled] != 0;
}

void Agreement::abandon(Exchange::AbandonReason const& reason)
{
    exchange_.abandon(agreements_, reason);
    if (!several_nodes() || !comm::mpi_is_active()) return;
    auto const& nodes = team_.nodes();
    for (std::size_t node = 0; node < nodes.size(); ++node)
        if (static_cast<int>(node) != team_.my_node())
            messages_.tell(nodes[node], tag_abandoned, to_number(agreements_, exchange_.reason()));
}

/// Lets MPI make progress and checks whether another node has abandoned a step. Returns how many messages have moved so
/// far.
std::uint64_t Agreement::poll()
{
    if (auto const told = messages_.told(tag_abandoned))
        exchange_.abandon(*told & UINT32_MAX,
                          {static_cast<Errc>(*told >> 32 & 0xff), static_cast<int>(*told >> 40) - 1, 0});
    return messages_.moved();
}

void Agreement::leave()
{
    (void)tally_.release();
    (void)agreement_.release();
}

}  // namespace tapioca::engine
