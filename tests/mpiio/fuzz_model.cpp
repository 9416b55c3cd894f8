// See fuzz_model.hpp.
#include "fuzz_model.hpp"

#include <algorithm>

namespace fuzz {

Segments extents_of(View const& view, std::int64_t first, std::int64_t length)
{
    Segments out;
    auto const& type = *view.filetype;
    if (length <= 0 || type.size == 0) return out;
    auto tile = first / type.size;
    auto skip = first % type.size;
    for (; length > 0; ++tile)
        for (auto const& piece : type.segments) {
            if (skip >= piece.length) {
                skip -= piece.length;
                continue;
            }
            auto const take = std::min(piece.length - skip, length);
            if (take == 0) break;
            auto const at = view.displacement + tile * type.extent() + piece.at + skip;
            if (!out.empty() && out.back().at + out.back().length == at)
                out.back().length += take;
            else
                out.push_back({at, take});
            length -= take;
            skip = 0;
        }
    return out;
}

std::int64_t end_in_view(View const& view, std::int64_t size)
{
    // Tiles do not overlap, so all etypes of the tiles before the one that `size` falls into start below it.
    auto const& type = *view.filetype;
    auto const per_tile = type.size / view.etype->size;
    auto const into = size - view.displacement;
    auto etype = type.extent() > 0 ? std::max<std::int64_t>(0, into / type.extent() - 1) * per_tile : 0;
    while (extents_of(view, etype * view.etype->size, 1)[0].at < size) ++etype;
    return etype;
}

bool Model::is_member(int rank) const
{
    return std::find(members.begin(), members.end(), rank) != members.end();
}

bool Model::same_view_everywhere() const
{
    return std::all_of(members.begin(), members.end(), [&](int rank) {
        auto const& a = view[static_cast<std::size_t>(rank)];
        auto const& b = view[static_cast<std::size_t>(members.front())];
        return a.displacement == b.displacement && a.etype == b.etype && a.filetype == b.filetype;
    });
}

void Model::opened(int mode, std::vector<int> ranks, int world)
{
    open = exists = true;
    amode = mode;
    atomic = false;
    members = std::move(ranks);
    auto const byte = named(MPI_BYTE, "BYTE", 1);
    view.assign(static_cast<std::size_t>(world), {0, byte, byte});
    auto const start = (mode & MPI_MODE_APPEND) != 0 ? size() : 0;
    position.assign(static_cast<std::size_t>(world), start);
    shared = start;
    synchronised();
}

void Model::set_view(std::vector<View> views)
{
    view = std::move(views);
    std::fill(position.begin(), position.end(), 0);
    shared = 0;
}

void Model::resize(std::int64_t size)
{
    bytes.resize(static_cast<std::size_t>(size));
    defined.resize(bytes.size());
    synchronised();
}

void Model::write(int rank, Segments const& extents, Bytes const& data)
{
    auto from = data.begin();
    auto const bit = 1U << static_cast<unsigned>(rank);
    for (auto const& [at, length] : extents) {
        auto const end = static_cast<std::size_t>(at + length);
        if (end > bytes.size()) {
            bytes.resize(end);
            defined.resize(end);
            if (!atomic) extenders_ |= bit;
        }
        if (marks_.size() < end) marks_.resize(end);
        std::copy_n(from, length, bytes.begin() + at);
        std::fill_n(defined.begin() + at, length, static_cast<unsigned char>(written));
        from += length;
        if (!atomic)
            for (auto i = static_cast<std::size_t>(at); i < end; ++i) marks_[i].writers |= bit;
    }
}

std::int64_t Model::read(int rank, Segments const& extents, Bytes& data, Bytes& sure)
{
    data.clear();
    sure.clear();
    auto const bit = 1U << static_cast<unsigned>(rank);
    if (marks_.size() < bytes.size()) marks_.resize(bytes.size());
    for (auto const& [at, length] : extents) {
        auto const end = std::min(at + length, size());
        for (auto i = at; i < end; ++i) {
            data.push_back(bytes[static_cast<std::size_t>(i)]);
            sure.push_back(defined[static_cast<std::size_t>(i)]);
            if (!atomic) marks_[static_cast<std::size_t>(i)].readers |= bit;
        }
        if (end < at + length) break;
    }
    return static_cast<std::int64_t>(data.size());
}

bool Model::needs_sync(int rank, bool writes, Segments const& extents) const
{
    auto const others = ~(1U << static_cast<unsigned>(rank));
    for (auto const& [at, length] : extents) {
        if (!writes && at + length > synced_size_ && size_needs_sync(rank)) return true;
        auto const end = std::min(static_cast<std::size_t>(at + length), marks_.size());
        for (auto i = static_cast<std::size_t>(at); i < end; ++i)
            if ((marks_[i].writers & others) != 0 || (writes && (marks_[i].readers & others) != 0)) return true;
    }
    return false;
}

bool Model::size_needs_sync(int rank) const
{
    return (extenders_ & ~(1U << static_cast<unsigned>(rank))) != 0;
}

void Model::synchronised()
{
    marks_.assign(bytes.size(), {});
    extenders_ = 0;
    synced_size_ = size();
}

}  // namespace fuzz
