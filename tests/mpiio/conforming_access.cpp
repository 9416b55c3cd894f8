// Makes the data accesses of a program; see conforming_maker.hpp.
#include <algorithm>
#include <limits>

#include "conforming_maker.hpp"

namespace conforming {

namespace {

// In bytes, of programs at the smallest scale.
constexpr std::int64_t longest_view = 3000;  ///< data in it that is accessed
constexpr std::int64_t region = 600;         ///< of each rank, where all have the same view
constexpr std::int64_t short_access = 200;
constexpr std::int64_t long_access = 1200;

Bytes noise(fuzz::Random& random, std::size_t length)
{
    Bytes bytes(length);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random.next());
    return bytes;
}

/// To and from external32, for elements whose size is the same there.
void swap_bytes(Bytes& data, std::int64_t element)
{
    for (auto at = data.begin(); at != data.end(); at += element) std::reverse(at, at + element);
}

bool by_all(How how)
{
    return how != How::Blocking && how != How::Nonblocking;
}

std::int64_t end_of(Segments const& extents)
{
    return extents.empty() ? 0 : extents.back().at + extents.back().length;
}

/// See `aggregators`.
Order::Access by_aggregators(std::vector<Order::Access> const& accesses)
{
    Order::Access all;
    auto begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = 0;
    for (auto const& access : accesses) {
        if (access.bytes.empty()) continue;
        begin = std::min(begin, access.bytes.front().at);
        end = std::max(end, end_of(access.bytes));
        if (access.size != Order::Size::Ignored) all.size = access.size;
        all.low = access.low;
    }
    all.handle = accesses.front().handle;
    all.rank = aggregators;
    all.write = true;
    all.bytes = {{begin, end - begin}};
    return all;
}

}  // namespace

std::int64_t Maker::random_offset(Handle const& handle, int rank)
{
    auto const etype = handle.base->size;
    if (random_.chance(25)) return recent_[z(rank)] / etype;
    if (handle.same_views && random_.chance(60))
        return (rank * region + random_.between(0, region / 2)) * scale_ / etype;
    return random_.between(0, longest_view * scale_ / etype);
}

/// Chooses how much rank `rank` accesses from `offset` on. Whether there is anything.
bool Maker::shape(Handle const& handle, fuzz::Access const& access, int rank, std::int64_t offset, Part& part,
                  Order::Access& touched)
{
    auto const& file = files_[z(handle.file)];
    auto const etype = handle.base->size;
    auto const& view = handle.views[z(rank)];
    auto n = random_.between(1, (random_.chance(20) ? long_access : short_access) * scale_ / etype);
    bool const may_be_short = access.how == How::Blocking && access.where == Where::At && random_.chance(15);
    auto extents = extents_of(view, offset * etype, n * etype);
    while (!access.write && !may_be_short && n > 0 && end_of(extents) > file.size())
        extents = extents_of(view, offset * etype, (n /= 2) * etype);
    recent_[z(rank)] = offset * etype;
    part.rank = rank;
    part.offset = offset;
    part.type = handle.base;
    part.count = static_cast<int>(n);
    if (!handle.external32 && n > 3 && random_.chance(20)) {
        auto const length = static_cast<int>(random_.between(1, n));
        auto const blocks = static_cast<int>(n / length);
        n = blocks * length;
        part.type = fuzz::vector(blocks, length, length + static_cast<int>(random_.between(1, 5)), handle.base);
        part.count = 1;
        extents = extents_of(view, offset * etype, n * etype);
    }
    touched = {handle.order, rank, access.write, extents, Order::Size::Ignored, file.size()};
    part.all = access.write || end_of(extents) <= file.size();
    if (end_of(extents) > file.size()) touched.size = access.write ? Order::Size::Grown : Order::Size::Read;
    return n > 0;
}

/// The buffer before and after, and the file. @pre the access is in order with all before it
void Maker::fill(Handle const& handle, bool write, Part& part, Segments const& extents)
{
    auto& file = files_[z(handle.file)];
    auto const memory = fuzz::bytes_in_memory(*part.type, part.count);
    auto const span = fuzz::span_of(*part.type, part.count);
    part.buffer = noise(random_, static_cast<std::size_t>(span.at + span.length));
    if (write) {
        auto data = fuzz::gather(part.buffer, 0, memory);
        if (handle.external32) swap_bytes(data, handle.base->size);
        auto const end = static_cast<std::size_t>(end_of(extents));
        if (file.bytes.size() < end) {
            file.bytes.resize(end);
            file.defined.resize(end);
        }
        auto from = data.begin();
        for (auto const& [at, length] : extents) {
            std::copy_n(from, length, file.bytes.begin() + at);
            std::fill_n(file.defined.begin() + at, length, static_cast<unsigned char>(1));
            from += length;
        }
        return;
    }
    Bytes data;
    Bytes sure;
    for (auto const& [at, length] : extents)
        for (auto i = at; i < at + length; ++i) {
            bool const there = i < file.size();
            data.push_back(there ? file.bytes[static_cast<std::size_t>(i)] : 0);
            sure.push_back(there ? file.defined[static_cast<std::size_t>(i)] : 0);
        }
    if (handle.external32) swap_bytes(data, handle.base->size);
    if (handle.external32) swap_bytes(sure, handle.base->size);
    part.wanted = part.buffer;
    part.sure.assign(part.buffer.size(), 1);
    fuzz::scatter(data, part.wanted, 0, memory);
    fuzz::scatter(sure, part.sure, 0, memory);
}

std::string Maker::describe(Operation const& operation) const
{
    auto const& access = operation.access;
    auto text =
        "h" + s(operation.handle) + (access.write ? " write" : " read") + fuzz::name_of(access.where, access.how) + ":";
    for (auto const& part : operation.parts) {
        text += " r" + s(part.rank) + " ";
        auto const bytes = part.count * part.type->size;
        auto const& view = handles_[z(operation.handle)].views[z(part.rank)];
        auto const extents = extents_of(view, part.offset * view.etype->size, bytes);
        text += extents.empty() ? "nothing"
                                : s(bytes) + " bytes in [" + s(extents.front().at) + "," + s(end_of(extents)) + ")";
    }
    return text;
}

/// Nothing but the access itself from here on. @pre all in order, and what is under way does not meet it
void Maker::perform(Handle& handle, Operation operation, std::vector<Order::Access> accesses)
{
    auto& file = files_[z(handle.file)];
    for (std::size_t k = 0; k < operation.parts.size(); ++k) {
        auto& part = operation.parts[k];
        fill(handle, operation.access.write, part, accesses[k].bytes);
        if (accesses[k].bytes.empty()) continue;
        file.order.done(accesses[k]);
    }
    if (stack_ == fuzz::Stack::Ompio && operation.access.write && by_all(operation.access.how))
        file.order.done(by_aggregators(accesses));
    for (auto& part : operation.parts) {
        if (operation.access.where != Where::Individual) continue;
        part.position = part.offset + part.count * part.type->size / handle.base->size;
        handle.positions[z(part.rank)] = part.position;
    }
    operation.text = describe(operation);
    operation.begun = out_.operations.size();
    auto const how = operation.access.how;
    bool const later = how == How::Nonblocking || how == How::NonblockingAll || how == How::Split;
    if (later) pending_.push_back({operation.begun, handle.number, by_all(how), accesses, operation.members});
    push(std::move(operation));
}

/// ROMIO does not convert what is read by nonblocking and ordered accesses.
bool Maker::converts_all(Handle const& handle) const
{
    return stack_ == fuzz::Stack::Ompio || !handle.external32;
}

/// ROMIO puts the individual pointer back when a nonblocking collective access is complete.
void Maker::before_pointer(Handle const& handle)
{
    if (stack_ != fuzz::Stack::Ompio) complete_on(handle.number, true);
}

void Maker::alone(Handle& handle)
{
    auto const rank = handle.members[z(static_cast<int>(random_.between(0, std::ssize(handle.members) - 1)))];
    auto operation = on(handle, Do::Access);
    operation.members = {rank};
    operation.access = {handle.writes() && (!handle.reads() || random_.chance(55)),
                        random_.chance(60) ? Where::At : Where::Individual,
                        random_.chance(70) || !converts_all(handle) ? How::Blocking : How::Nonblocking};
    Part part;
    Order::Access touched;
    if (operation.access.where == Where::Individual) before_pointer(handle);
    auto const offset = operation.access.where == Where::At ? random_offset(handle, rank) : handle.positions[z(rank)];
    if (!shape(handle, operation.access, rank, offset, part, touched)) return;
    operation.parts = {part};
    order_before(handle.file, &handle, {touched});
    finish_own(handle.number, {touched});
    perform(handle, operation, {touched});
}

/// Completes this handle's accesses under way that meet these.
void Maker::finish_own(int handle, std::vector<Order::Access> const& accesses)
{
    for (std::size_t i = pending_.size(); i-- > 0;) {
        if (pending_[i].handle != handle) continue;
        bool met = false;
        for (auto const& mine : pending_[i].accesses)
            for (auto const& access : accesses)
                met = met || (mine.rank == access.rank && (mine.write || access.write) && fits(mine, access));
        if (met) complete(i);
    }
}

bool Maker::fits(Order::Access const& a, Order::Access const& b)
{
    return fuzz::overlap(a.bytes, b.bytes) || a.size != Order::Size::Ignored || b.size != Order::Size::Ignored;
}

/// A collective access of all members, some of which may have nothing, and that do not get in each other's way.
bool Maker::plan_together(Handle& handle, Operation& operation, std::vector<Order::Access>& accesses)
{
    complete_on(handle.number, true);
    bool any = false;
    auto offset = handle.shared;
    for (auto rank : handle.members) {
        Part part;
        Order::Access touched;
        auto const where = operation.access.where;
        if (where == Where::At) offset = random_offset(handle, rank);
        if (where == Where::Individual) offset = handle.positions[z(rank)];
        bool some = shape(handle, operation.access, rank, offset, part, touched);
        for (auto const& other : accesses)
            some = some && !((operation.access.write || avoid_.meeting) && fuzz::overlap(touched.bytes, other.bytes));
        if (!some || random_.chance(8)) {
            part.type = handle.base;
            part.count = 0;
            touched.bytes.clear();
            touched.size = Order::Size::Ignored;
        }
        any = any || !touched.bytes.empty();
        if (touched.bytes.empty() && avoid_.short_reads && operation.access.how != How::All) {  // see fuzz_known.hpp
            if (where != Where::Shared) operation.access.how = How::All;
        }
        offset += part.count * part.type->size / handle.base->size;
        operation.parts.push_back(part);
        accesses.push_back(touched);
    }
    return any;
}

void Maker::together(Handle& handle)
{
    auto operation = on(handle, Do::Access);
    auto const how = random_.between(0, 99);
    operation.access = {handle.writes() && (!handle.reads() || random_.chance(60)),
                        random_.chance(65) ? Where::At : Where::Individual,
                        how < 50                                                              ? How::All
                        : how < 75 || avoid_.nonblocking_collectives || !converts_all(handle) ? How::Split
                                                                                              : How::NonblockingAll};
    std::vector<Order::Access> accesses;
    if (!plan_together(handle, operation, accesses)) return;
    order_before(handle.file, &handle, accesses);
    finish_own(handle.number, accesses);
    perform(handle, operation, accesses);
    bool const apart = operation.access.how == How::NonblockingAll && operation.parts.size() > 1 && random_.chance(30);
    if (!apart) return;
    // Some begin it only after all have met.
    auto begun = out_.operations.back();
    out_.operations.pop_back();
    begin_apart(begun, nullptr);
}

/// Begins a nonblocking collective access on some ranks, then does `between` on all, or they meet, then begins it on
/// the others.
void Maker::begin_apart(Operation const& whole, Operation const* between)
{
    for (bool const early : {true, false}) {
        auto some = whole;
        some.members.clear();
        some.parts.clear();
        for (auto const& part : whole.parts)
            if ((part.rank % 2 == 0) == early) {
                some.parts.push_back(part);
                some.members.push_back(part.rank);
            }
        some.text += early ? " (begun on even ranks)" : " (begun on odd ranks)";
        if (!some.members.empty()) push(some);
        if (early && between) push(*between);
        if (early && (!between || random_.chance(30))) barrier();
    }
}

/// Two nonblocking collective accesses that are begun in different order on different ranks.
void Maker::two_at_once()
{
    auto* const first = any_handle();
    auto* const second = any_handle();
    if (first == second || avoid_.nonblocking_collectives) return;
    if (!converts_all(*first) || !converts_all(*second)) return;
    std::vector<Operation> operations;
    std::vector<std::vector<Order::Access>> accesses(2);
    for (auto* handle : {first, second}) {
        auto operation = on(*handle, Do::Access);
        operation.access = {handle->writes() && (!handle->reads() || random_.chance(40)), Where::At,
                            How::NonblockingAll};
        if (!plan_together(*handle, operation, accesses[operations.size()])) return;
        if (operation.access.how != How::NonblockingAll) return;
        operations.push_back(operation);
    }
    order_before(first->file, first, accesses[0]);
    order_before(second->file, second, accesses[1]);
    order_before(first->file, first, accesses[0]);
    finish_own(first->number, accesses[0]);
    finish_own(second->number, accesses[1]);
    perform(*first, operations[0], accesses[0]);
    for (auto const& access : accesses[1])
        if (!files_[z(second->file)].order.conflicts(access).empty()) return;
    perform(*second, operations[1], accesses[1]);
    auto const b = out_.operations.back();
    out_.operations.pop_back();
    auto const a = out_.operations.back();
    out_.operations.pop_back();
    begin_apart(a, &b);
}

void Maker::shared_alone(Handle& handle)
{
    if (!has_shared_pointer(handle) || (avoid_.shared_alone && handle.members.size() > 1)) return;
    complete_on(handle.number);
    barrier();
    auto const rank = handle.members[z(static_cast<int>(random_.between(0, std::ssize(handle.members) - 1)))];
    auto operation = on(handle, Do::Access);
    operation.members = {rank};
    operation.access = {handle.writes() && (!handle.reads() || random_.chance(55)), Where::Shared,
                        random_.chance(70) || !converts_all(handle) ? How::Blocking : How::Nonblocking};
    Part part;
    Order::Access touched;
    if (!shape(handle, operation.access, rank, handle.shared, part, touched)) return;
    operation.parts = {part};
    order_before(handle.file, &handle, {touched});
    handle.shared += part.count * part.type->size / handle.base->size;
    perform(handle, operation, {touched});
    after_shared(handle);
}

void Maker::ordered(Handle& handle)
{
    if (!has_shared_pointer(handle)) return;
    complete_on(handle.number);
    barrier();
    auto operation = on(handle, Do::Access);
    operation.access = {handle.writes() && (!handle.reads() || random_.chance(55)), Where::Shared,
                        random_.chance(70) ? How::All : How::Split};
    std::vector<Order::Access> accesses;
    if (!plan_together(handle, operation, accesses)) return;
    order_before(handle.file, &handle, accesses);
    for (auto const& part : operation.parts) handle.shared += part.count * part.type->size / handle.base->size;
    perform(handle, operation, accesses);
    after_shared(handle);
}

/// Where the shared pointer is, is known when all is done.
void Maker::after_shared(Handle& handle)
{
    complete_on(handle.number);
    barrier();
    if (random_.chance(50)) return;
    auto operation = on(handle, Do::SharedPosition);
    operation.size = handle.shared;
    operation.text = "get_position_shared h" + s(handle.number) + ": " + s(handle.shared);
    push(operation);
    barrier();
}

/// An access without MPI.
void Maker::posix(int number)
{
    if (avoid_.without_mpi) return;
    auto& file = files_[z(number)];
    Operation operation;
    bool const write = random_.chance(50);
    operation.what = write ? Do::PosixWrite : Do::PosixRead;
    operation.file = number;
    auto const rank = static_cast<int>(random_.between(0, ranks_ - 1));
    operation.members = {rank};
    Part part;
    part.rank = rank;
    part.offset = random_.between(0, write ? longest_view * scale_ : file.size());
    auto const length =
        random_.between(1, write ? short_access * scale_ : std::min(region * scale_, file.size() - part.offset));
    if (!write && part.offset + length > file.size()) return;
    Order::Access access{Order::posix, rank, write, {{part.offset, length}}, Order::Size::Ignored, file.size()};
    if (write && part.offset + length > file.size()) access.size = Order::Size::Grown;
    order_before(number, nullptr, {access});
    Handle as_bytes;
    as_bytes.file = number;
    part.type = fuzz::named(MPI_BYTE, "BYTE", 1);
    part.count = static_cast<int>(length);
    fill(as_bytes, write, part, access.bytes);
    file.order.done(access);
    operation.text = std::string(write ? "pwrite" : "pread") + " file " + s(number) + " on rank " + s(rank) + ": [" +
                     s(part.offset) + "," + s(part.offset + length) + ")";
    operation.parts = {part};
    push(operation);
}

}  // namespace conforming
