// Makes programs: handles, and the order of accesses. Data accesses are in conforming_access.cpp, calls that change or
// query the state of a file or a handle in conforming_state.cpp.
#include <algorithm>

#include "conforming_maker.hpp"

namespace conforming {

using fuzz::named;
using fuzz::Stack;

namespace {

constexpr int most_handles = 3;  ///< of one file at a time

std::string list(std::vector<int> const& ranks)
{
    std::string text;
    for (auto rank : ranks) text += (text.empty() ? "" : ",") + s(rank);
    return text;
}

}  // namespace

Maker::Maker(std::uint64_t seed, int ranks, Stack stack)
    : seed_(seed),
      random_(seed * 0x9e6c63d0876a9a47U + 29),
      ranks_(ranks),
      stack_(stack),
      avoid_(avoided(stack)),
      bytewise_(random_.chance(40)),
      scale_(random_.chance(70)   ? 1
             : random_.chance(80) ? 16
                                  : 64)
{
    for (int rank = 0; rank < ranks; ++rank) world_.push_back(rank);
    recent_.assign(world_.size(), 0);
    out_.seed = seed;
}

Operation& Maker::push(Operation operation)
{
    out_.operations.push_back(std::move(operation));
    return out_.operations.back();
}

Operation Maker::on(Handle const& handle, Do what) const
{
    Operation operation;
    operation.what = what;
    operation.file = handle.file;
    operation.handle = handle.number;
    operation.members = handle.members;
    return operation;
}

void Maker::open(int file)
{
    auto& f = files_[z(file)];
    auto const open_now = std::count_if(handles_.begin(), handles_.end(),
                                        [&](Handle const& other) { return other.open && other.file == file; });
    Handle handle;
    handle.file = file;
    handle.number = static_cast<int>(handles_.size());
    handle.members = world_;
    auto const kind = random_.between(0, 99);
    if (open_now > 0 || kind < 15) {
        if (kind < 50)
            handle.members = {static_cast<int>(random_.between(0, ranks_ - 1))};
        else if (kind < 70 && ranks_ > 2 && !avoid_.subcommunicators) {
            auto const left_out = static_cast<int>(random_.between(0, ranks_ - 1));
            handle.members.erase(handle.members.begin() + left_out);
        }
    }
    handle.amode = f.exists && random_.chance(30) ? MPI_MODE_RDWR : MPI_MODE_RDWR | MPI_MODE_CREATE;
    if (open_now > 0 && random_.chance(20)) handle.amode = MPI_MODE_RDONLY;
    if (open_now > 0 && random_.chance(10) && bytewise_) handle.amode = MPI_MODE_WRONLY;
    if (!f.exists && random_.chance(20)) handle.amode |= MPI_MODE_EXCL;
    if (open_now == 0 && handle.members.size() == world_.size() && random_.chance(3))
        handle.amode |= MPI_MODE_DELETE_ON_CLOSE;
    handle.base = named(MPI_BYTE, "BYTE", 1);
    handle.views.assign(z(ranks_), {0, handle.base, handle.base});
    handle.positions.assign(z(ranks_), 0);
    auto actors = handle.members;
    if (stack_ == Stack::Ompio) actors.push_back(aggregators);
    handle.order = f.order.opened(actors);
    handle.crowded = open_now > 0;
    for (auto& other : handles_)
        if (other.file == file && other.open && open_now > 0) other.crowded = true;
    f.exists = true;
    auto operation = on(handle, Do::Open);
    operation.amode = handle.amode;
    operation.hint = handle.members.size() < world_.size() && random_.chance(50);
    auto const says = [&](int mode, char const* text) { return (handle.amode & mode) != 0 ? text : ""; };
    operation.text = "open file " + s(file) + " as h" + s(handle.number) + " on ranks " + list(handle.members);
    operation.text += says(MPI_MODE_RDONLY, ", to read");
    operation.text += says(MPI_MODE_WRONLY, ", to write");
    operation.text += says(MPI_MODE_DELETE_ON_CLOSE, ", deleted on close");
    if (operation.hint) operation.text += ", with a hint";
    complete_for_ompio();
    push(operation);
    handles_.push_back(handle);
    if (open_now == 0) barrier();  // the file is there now, for everybody
}

void Maker::close(Handle& handle)
{
    bool const deletes = (handle.amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
    for (auto& other : handles_)  // what becomes of those, the standard leaves open
        if (deletes && other.open && other.file == handle.file && &other != &handle) close(other);
    complete_on(handle.number);
    complete_for_ompio();
    if (deletes) barrier();
    push(on(handle, Do::Close)).text = "close h" + s(handle.number);
    auto& file = files_[z(handle.file)];
    file.order.closed(handle.order);
    handle.open = false;
    if (!deletes) return;
    barrier();
    file.exists = false;
    file.bytes.clear();
    file.defined.clear();
}

void Maker::sync(Handle const& handle)
{
    complete_on(handle.number);
    complete_for_ompio();
    push(on(handle, Do::Sync)).text = "sync h" + s(handle.number);
    files_[z(handle.file)].order.synced(handle.order);
}

void Maker::barrier()
{
    Operation operation;
    operation.members = world_;
    operation.text = "barrier";
    push(operation);
    for (std::size_t i = 0; i < files_.size(); ++i) {
        std::set<int> busy;
        for (auto const& pending : pending_) {
            auto const& handle = handles_[z(pending.handle)];
            if (handle.file == static_cast<int>(i)) busy.insert(handle.order);
        }
        files_[i].order.met(busy);
    }
}

void Maker::complete(std::size_t i)
{
    auto const pending = pending_[i];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    auto operation = on(handles_[z(pending.handle)], Do::Complete);
    operation.members = pending.members;
    operation.begun = pending.begun;
    operation.text = "complete operation " + s(static_cast<std::int64_t>(pending.begun));
    push(operation);
}

void Maker::complete_on(int handle, bool collective_only)
{
    for (std::size_t i = pending_.size(); i-- > 0;)
        if (pending_[i].handle == handle && (pending_[i].by_all || !collective_only)) complete(i);
}

/// Before what OMPIO does not survive while an access of any file is under way; see fuzz::may_come_between.
void Maker::complete_for_ompio()
{
    while (stack_ == Stack::Ompio && !pending_.empty()) complete(pending_.size() - 1);
}

/// Puts the accesses of others in order with those that come next, of `ranks` through `target`; null: without MPI.
void Maker::settle(Handle const* target, std::set<Order::Conflict> const& conflicts, std::vector<int> const& ranks,
                   int file)
{
    bool same_handle = target != nullptr;
    bool same_rank = ranks.size() == 1;
    std::vector<Handle const*> others;
    for (auto const& handle : handles_) {
        auto const of_this = [&](Order::Conflict const& conflict) { return conflict.handle == handle.order; };
        if (handle.file != file || !handle.open || std::none_of(conflicts.begin(), conflicts.end(), of_this)) continue;
        others.push_back(&handle);
        complete_on(handle.number);
    }
    for (auto const& conflict : conflicts) {
        same_handle = same_handle && conflict.handle == target->order;
        same_rank = same_rank && conflict.rank == ranks.front();
    }
    if (target) complete_on(target->number);
    if (same_handle && target->atomic && random_.chance(70)) return barrier();
    for (auto const* other : others) sync(*other);
    if (!same_rank || random_.chance(40)) barrier();
    if (target) sync(*target);
}

void Maker::order_before(int file, Handle const* target, std::vector<Order::Access> const& accesses)
{
    auto const& order = files_[z(file)].order;
    for (int attempt = 0;; ++attempt) {
        std::set<Order::Conflict> all;
        std::vector<int> ranks;
        for (auto const& access : accesses) {
            auto const some = order.conflicts(access);
            all.insert(some.begin(), some.end());
            ranks.push_back(access.rank);
        }
        if (all.empty()) return;
        if (attempt < 2) {
            settle(target, all, ranks, file);
            continue;
        }
        std::vector<Handle const*> open;
        for (auto const& handle : handles_)
            if (handle.file == file && handle.open) open.push_back(&handle);
        for (auto const* handle : open) sync(*handle);
        barrier();
        for (auto const* handle : open) sync(*handle);
        if (attempt > 3) std::abort();  // the rules say that this is enough
    }
}

Maker::Handle* Maker::any_handle()
{
    std::vector<Handle*> open;
    for (auto& handle : handles_)
        if (handle.open) open.push_back(&handle);
    return open.empty() ? nullptr : open[z(static_cast<int>(random_.between(0, std::ssize(open) - 1)))];
}

void Maker::one_operation()
{
    if (!pending_.empty() && random_.chance(25))
        complete(z(static_cast<int>(random_.between(0, std::ssize(pending_) - 1))));
    auto* const handle = any_handle();
    auto const file = static_cast<int>(random_.between(0, std::ssize(files_) - 1));
    auto const open_handles = [&](int of) {
        return std::count_if(handles_.begin(), handles_.end(),
                             [&](Handle const& other) { return other.open && other.file == of; });
    };
    if (!handle || open_handles(file) == 0) {
        if (random_.chance(50) || !handle || !files_[z(file)].exists) return open(file);
        return posix(file);
    }
    auto const kind = random_.between(0, 99);
    if (kind < 24)
        alone(*handle);
    else if (kind < 50)
        together(*handle);
    else if (kind < 55)
        shared_alone(*handle);
    else if (kind < 60)
        ordered(*handle);
    else if (kind < 66)
        view(*handle);
    else if (kind < 70)
        set_size(*handle);
    else if (kind < 74)
        ask_size(*handle);
    else if (kind < 77)
        seek(*handle);
    else if (kind < 79)
        seek_shared(*handle);
    else if (kind < 82)
        atomicity(*handle);
    else if (kind < 85)
        sync(*handle);
    else if (kind < 90)
        posix(file);
    else if (kind < 92)
        close(*handle);
    else if (kind < 97 && open_handles(file) < most_handles)
        open(file);
    else
        two_at_once();
}

Program Maker::make(std::int64_t most_operations)
{
    auto const files = random_.chance(40) ? 2 : 1;
    for (int i = 0; i < files; ++i) {
        files_.push_back({Order(ranks_, bytewise_), {}, {}, random_.chance(40)});
        auto& file = files_.back();
        if (file.exists)
            for (auto left = random_.between(0, 3000) * scale_; left > 0; --left)
                file.bytes.push_back(static_cast<unsigned char>(random_.next()));
        file.defined.assign(file.bytes.size(), 1);
        out_.existed.push_back(file.exists);
        out_.before.push_back(file.bytes);
    }
    for (int i = 0; i < files; ++i) open(i);
    auto const operations = std::min<std::int64_t>(random_.between(5, 40), most_operations);
    for (int i = 0; i < operations; ++i) one_operation();
    while (!pending_.empty()) complete(pending_.size() - 1);
    for (auto& handle : handles_)
        if (handle.open) close(handle);
    for (auto const& file : files_) {
        out_.after.push_back(file.bytes);
        out_.sure.push_back(file.defined);
        out_.exists.push_back(file.exists);
    }
    return std::move(out_);
}

Program make_program(std::uint64_t seed, int ranks, Stack stack, std::int64_t most_operations)
{
    return Maker(seed, ranks, stack).make(most_operations);
}

}  // namespace conforming
