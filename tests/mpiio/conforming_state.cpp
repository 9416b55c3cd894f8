// Makes the calls of a program that change or query the state of a file or a handle; see conforming_maker.hpp.
#include <algorithm>

#include "conforming_maker.hpp"

namespace conforming {

using fuzz::named;

void Maker::view(Handle& handle)
{
    complete_on(handle.number);
    complete_for_ompio();
    auto const n = static_cast<int>(handle.members.size());
    static std::vector<TypePtr> const bases = {named(MPI_BYTE, "BYTE", 1), named(MPI_SHORT, "SHORT", 2),
                                               named(MPI_INT, "INT", 4), named(MPI_DOUBLE, "DOUBLE", 8)};
    handle.base = bases[z(static_cast<int>(random_.between(0, 3)))];
    handle.external32 = !avoid_.external32 && random_.chance(20);
    auto const etype = handle.base;
    auto const how = random_.between(0, 99);
    handle.same_views = true;
    if (how < 35 || bytewise_) {
        auto const displacement = random_.between(0, 200);
        handle.views.assign(z(ranks_), {displacement, etype, etype});
    } else if (how < 60 && n > 1) {
        auto const views = fuzz::interleaved(random_, n, etype, true);
        for (int k = 0; k < n; ++k) handle.views[z(handle.members[z(k)])] = views[z(k)];
        handle.same_views = false;
    } else {
        auto const depth = handle.external32 || stack_ != fuzz::Stack::Ompio ? 1 : 2;  // ROMIO loses its pointers there
        auto const type = random_file_type(random_, etype, static_cast<int>(random_.between(1, depth)), true, true);
        auto const apart = random_.chance(40) ? random_.between(1, 600) : 0;
        auto const displacement = random_.between(0, 100);
        for (int rank = 0; rank < ranks_; ++rank) handle.views[z(rank)] = {displacement + rank * apart, etype, type};
        handle.same_views = apart == 0;
    }
    std::fill(handle.positions.begin(), handle.positions.end(), 0);
    handle.shared = 0;
    auto operation = on(handle, Do::View);
    operation.views = handle.views;
    operation.external32 = handle.external32;
    operation.text = "set_view h" + s(handle.number) + (handle.external32 ? " external32" : "");
    for (auto rank : handle.members) {
        auto const& view = handle.views[z(rank)];
        operation.text += "; r" + s(rank) + ": " + s(view.displacement) + " " + view.filetype->text;
        if (handle.same_views) break;
    }
    push(operation);
}

void Maker::atomicity(Handle& handle)
{
    if (avoid_.atomicity) return;
    complete_on(handle.number);
    barrier();
    handle.atomic = !handle.atomic;
    auto operation = on(handle, Do::Atomicity);
    operation.size = handle.atomic ? 1 : 0;
    operation.text = "h" + s(handle.number) + (handle.atomic ? " becomes atomic" : " is no longer atomic");
    push(operation);
    files_[z(handle.file)].order.set_atomic(handle.order, handle.atomic);
    barrier();
}

void Maker::set_size(Handle& handle)
{
    if (!handle.writes()) return;
    complete_on(handle.number);
    complete_for_ompio();
    auto& file = files_[z(handle.file)];
    bool const may_cut = !handle.crowded || !avoid_.cuts_beside;
    auto const size = may_cut && random_.chance(60) ? random_.between(0, file.size())
                                                    : file.size() + random_.between(0, 3000) * scale_;
    std::vector<Order::Access> accesses;
    for (auto rank : handle.members)
        accesses.push_back({handle.order, rank, true, {}, Order::Size::Set, std::min(size, file.size())});
    order_before(handle.file, &handle, accesses);
    auto operation = on(handle, Do::SetSize);
    operation.size = size;
    operation.text = "set_size h" + s(handle.number) + " " + s(size);
    push(operation);
    file.bytes.resize(static_cast<std::size_t>(size));
    file.defined.resize(file.bytes.size());
    for (auto const& access : accesses) file.order.done(access);
}

void Maker::ask_size(Handle& handle)
{
    auto& file = files_[z(handle.file)];
    auto const rank = handle.members[z(static_cast<int>(random_.between(0, std::ssize(handle.members) - 1)))];
    Order::Access const access{handle.order, rank, false, {}, Order::Size::Read, file.size()};
    order_before(handle.file, &handle, {access});
    finish_own(handle.number, {access});
    auto operation = on(handle, Do::Size);
    operation.members = {rank};
    operation.size = file.size();
    operation.text = "get_size h" + s(handle.number) + " on rank " + s(rank) + ": " + s(operation.size);
    push(operation);
    file.order.done(access);
}

void Maker::seek(Handle& handle)
{
    auto const rank = handle.members[z(static_cast<int>(random_.between(0, std::ssize(handle.members) - 1)))];
    before_pointer(handle);
    auto operation = on(handle, Do::Seek);
    operation.members = {rank};
    operation.size = random_offset(handle, rank);
    operation.text = "seek h" + s(handle.number) + " on rank " + s(rank) + " to " + s(operation.size);
    handle.positions[z(rank)] = operation.size;
    push(operation);
}

/// OMPIO and ROMIO mix up those of several handles of one file, and ROMIO does not convert there.
bool Maker::has_shared_pointer(Handle const& handle) const
{
    return handle.same_views && !handle.crowded && converts_all(handle);
}

void Maker::seek_shared(Handle& handle)
{
    if (!has_shared_pointer(handle)) return;
    complete_on(handle.number);
    barrier();
    auto operation = on(handle, Do::SeekShared);
    operation.size = random_offset(handle, 0);
    operation.text = "seek_shared h" + s(handle.number) + " to " + s(operation.size);
    handle.shared = operation.size;
    push(operation);
    barrier();
}

}  // namespace conforming
