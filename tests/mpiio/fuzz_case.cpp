// Makes cases: which steps, and those that move no data. See fuzz_case.hpp.
#include <algorithm>
#include <numeric>

#include "fuzz_generator.hpp"

namespace fuzz {

Case Generator::make()
{
    auto const files = random_.chance(20) ? 2 : 1;
    for (int i = 0; i < files; ++i) {
        Slot slot;
        slot.model.exists = random_.chance(65);
        if (slot.model.exists) slot.model.bytes = noise(random_.between(0, random_.chance(20) ? 12000 : 1500));
        slot.model.defined.assign(slot.model.bytes.size(), Model::written);
        out_.before.push_back(slot.model.bytes);
        out_.existed.push_back(slot.model.exists);
        slots_.push_back(slot);
    }
    for (int i = 0; i < files; ++i) open(i);
    for (auto left = random_.between(4, 14); left > 0; --left) {
        auto const i = static_cast<int>(random_.between(0, files - 1));
        if (random_.chance(4)) {
            close(i);
            open(i);
        }
        one_step(i);
    }
    for (int i = 0; i < files; ++i) close(i);
    return std::move(out_);
}

Bytes Generator::noise(std::int64_t length)
{
    Bytes bytes(static_cast<std::size_t>(length));
    Random stream(random_.next());
    for (auto& byte : bytes) byte = static_cast<unsigned char>(stream.next() >> 20U);
    return bytes;
}

Step& Generator::push(Step step)
{
    step.parts.resize(z(ranks_));
    step.wild_view = slots_[z(step.file)].wild_view;
    out_.steps.push_back(std::move(step));
    return out_.steps.back();
}

Step Generator::collective(int i, Do what)
{
    Step step;
    step.what = what;
    step.file = i;
    step.parts.resize(z(ranks_));
    for (auto rank : slots_[z(i)].model.members) step.parts[z(rank)].takes_part = true;
    return step;
}

/// Expected of every step on an open file: where the pointers are afterwards.
void Generator::expect_positions(Step& step) const
{
    auto const& model = slots_[z(step.file)].model;
    for (int rank = 0; rank < ranks_; ++rank) step.parts[z(rank)].position = model.position[z(rank)];
}

void Generator::look_at_file(Step& step) const
{
    auto const& model = slots_[z(step.file)].model;
    step.look_at_file = true;
    step.exists = model.exists;
    step.contents = std::make_shared<Bytes const>(model.bytes);
    step.defined = std::make_shared<Bytes const>(model.defined);
}

void Generator::open(int i)
{
    auto& model = slots_[z(i)].model;
    std::vector<int> members(z(ranks_));
    std::iota(members.begin(), members.end(), 0);
    auto const who = random_.between(0, 99);
    if (who < 12)
        members = {static_cast<int>(random_.between(0, ranks_ - 1))};
    else if (who < 25 && ranks_ > 2 && !avoid_.subcommunicators)
        members.erase(members.begin() + random_.between(0, ranks_ - 1));

    Step step;
    step.what = Do::Open;
    step.file = i;
    step.members = members;
    step.parts.resize(z(ranks_));
    for (auto rank : members) step.parts[z(rank)].takes_part = true;

    if (random_.chance(6)) {  // one that must fail
        auto bad = step;
        bad.fails = true;
        auto const how = random_.between(0, 2);
        if (how == 0)
            bad.amode = MPI_MODE_RDONLY | MPI_MODE_CREATE;
        else if (how == 1)
            bad.amode = MPI_MODE_RDWR | MPI_MODE_WRONLY;
        else
            bad.amode = model.exists ? MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL : MPI_MODE_RDONLY;
        bad.text = "open that must fail, amode " + s(bad.amode);
        push(bad);
    }

    auto const mode = random_.between(0, 99);
    int amode = mode < 70 ? MPI_MODE_RDWR : mode < 85 && model.exists ? MPI_MODE_RDONLY : MPI_MODE_WRONLY;
    if (amode != MPI_MODE_RDONLY && (!model.exists || random_.chance(50))) {
        amode |= MPI_MODE_CREATE;
        if (!model.exists && random_.chance(20)) amode |= MPI_MODE_EXCL;
    }
    if (random_.chance(10)) amode |= MPI_MODE_APPEND;
    if (random_.chance(5)) amode |= MPI_MODE_UNIQUE_OPEN;
    if (random_.chance(5)) amode |= MPI_MODE_DELETE_ON_CLOSE;
    if (random_.chance(8) && !avoid_.sequential && (amode & MPI_MODE_RDWR) == 0) amode |= MPI_MODE_SEQUENTIAL;
    step.amode = amode;
    if (random_.chance(15)) step.hints.emplace_back("cb_nodes", s(random_.between(1, ranks_)));
    if (random_.chance(10)) step.hints.emplace_back("cb_buffer_size", "4096");
    if (random_.chance(15)) step.hints.emplace_back("romio_cb_write", random_.chance(70) ? "enable" : "disable");
    if (random_.chance(15)) step.hints.emplace_back("romio_cb_read", random_.chance(70) ? "enable" : "disable");
    if (random_.chance(8)) step.hints.emplace_back("romio_ds_write", "disable");
    if (random_.chance(8)) step.hints.emplace_back("romio_ds_read", "disable");

    model.opened(amode, members, ranks_);
    slots_[z(i)].base = named(MPI_BYTE, "BYTE", 1);
    slots_[z(i)].shape_usable = false;
    slots_[z(i)].wild_view = false;
    expect_positions(step);
    step.text = "open, amode";
    for (auto const& [bit, name] : {std::pair{MPI_MODE_RDONLY, " RDONLY"},
                                    {MPI_MODE_RDWR, " RDWR"},
                                    {MPI_MODE_WRONLY, " WRONLY"},
                                    {MPI_MODE_CREATE, " CREATE"},
                                    {MPI_MODE_EXCL, " EXCL"},
                                    {MPI_MODE_APPEND, " APPEND"},
                                    {MPI_MODE_UNIQUE_OPEN, " UNIQUE_OPEN"},
                                    {MPI_MODE_SEQUENTIAL, " SEQUENTIAL"},
                                    {MPI_MODE_DELETE_ON_CLOSE, " DELETE_ON_CLOSE"}})
        if ((amode & bit) != 0) step.text += name;
    step.text += ", by ranks";
    for (auto rank : members) step.text += " " + s(rank);
    for (auto const& [key, value] : step.hints) step.text += ", " + key + "=" + value;
    push(step);
}

void Generator::close(int i)
{
    auto& model = slots_[z(i)].model;
    auto step = collective(i, Do::Close);
    model.open = false;
    if ((model.amode & MPI_MODE_DELETE_ON_CLOSE) != 0) {
        model.exists = false;
        model.bytes.clear();
        model.defined.clear();
    }
    look_at_file(step);
    step.text = "close";
    push(step);
}

void Generator::sync(int i)
{
    auto& model = slots_[z(i)].model;
    for (int twice = 0; twice < 2; ++twice) {  // and all ranks meet after each step
        auto step = collective(i, Do::Sync);
        expect_positions(step);
        if (twice == 1) look_at_file(step);
        if (!model.writes()) step.features = "R";
        step.text = "sync";
        push(step);
    }
    model.synchronised();
}

void Generator::sync_if_size_is_open(int i)
{
    auto const& model = slots_[z(i)].model;
    for (auto rank : model.members)
        if (model.size_needs_sync(rank)) return sync(i);
}

void Generator::one_step(int i)
{
    auto const& model = slots_[z(i)].model;
    bool const wild = slots_[z(i)].wild_view;
    auto const what = random_.between(0, 99);
    if (what < 20 && !model.sequential()) return view(i);
    if (what < 72) return data(i);
    if (what < 78 && !model.sequential() && !(wild && avoid_.pointers)) return seek(i);
    if (what < 84) return query(i);
    if (what < 86) return sync(i);
    if (what < 89 && !wild && !model.sequential() && model.same_view_everywhere()) return seek_shared(i);
    if (what < 92 && model.writes() && !model.sequential()) return resize(i);
    if (what < 93 && !wild && !avoid_.atomicity) return atomicity(i);
    if (what < 94) return set_info(i);
    if (what < 98 && !wild) return failing(i);
    if (what < 99) return null_file(i);
    return data(i);
}

/// Each rank to its own place, one behind the other, as programs without views do.
void Generator::seek_apart(int i)
{
    auto& model = slots_[z(i)].model;
    auto step = collective(i, Do::Seek);
    auto const apart = random_.between(0, 200);
    auto const start = random_.between(0, 50);
    step.text = "seek";
    for (auto rank : model.members) {
        auto& part = step.parts[z(rank)];
        part.offset = start + apart * rank;
        model.position[z(rank)] = part.offset;
        step.text += ", rank " + s(rank) + " to " + s(part.offset);
    }
    expect_positions(step);
    push(step);
}

void Generator::seek(int i)
{
    auto& model = slots_[z(i)].model;
    sync_if_size_is_open(i);
    auto step = collective(i, Do::Seek);
    step.text = "seek";
    for (auto rank : model.members) {
        auto& part = step.parts[z(rank)];
        part.takes_part = random_.chance(70);
        if (!part.takes_part) continue;
        auto& position = model.position[z(rank)];
        auto const kind = random_.between(0, slots_[z(i)].wild_view ? 1 : 2);
        auto const end = end_in_view(model.view[z(rank)], model.size());
        auto const from = kind == 0 ? 0 : kind == 1 ? position : end;
        part.whence = kind == 0 ? MPI_SEEK_SET : kind == 1 ? MPI_SEEK_CUR : MPI_SEEK_END;
        if (kind == 2 && model.size() < model.view[z(rank)].displacement) step.features = "V";
        part.offset = random_.between(-std::min<std::int64_t>(from, 60), 60);
        position = from + part.offset;
        step.text += ", rank " + s(rank) + " by " + s(part.offset) + " from the " +
                     (kind == 0   ? "start"
                      : kind == 1 ? "position"
                                  : "end");
    }
    expect_positions(step);
    push(step);
}

void Generator::seek_shared(int i)
{
    auto& model = slots_[z(i)].model;
    sync_if_size_is_open(i);
    auto step = collective(i, Do::SeekShared);
    bool const behind = model.size() < model.view[z(model.members.front())].displacement;
    auto const kind = random_.between(0, behind ? 1 : 2);  // ROMIO would hang
    auto const end = end_in_view(model.view[z(model.members.front())], model.size());
    auto const from = kind == 0 ? 0 : kind == 1 ? model.shared : end;
    step.size = random_.between(-std::min<std::int64_t>(from, 60), 60);
    for (auto& part : step.parts) part.whence = kind == 0 ? MPI_SEEK_SET : kind == 1 ? MPI_SEEK_CUR : MPI_SEEK_END;
    step.text = "seek_shared by " + s(step.size) + " from the " +
                (kind == 0   ? "start"
                 : kind == 1 ? "position"
                             : "end");
    model.shared = from + step.size;
    step.shared = model.shared;
    expect_positions(step);
    push(step);
}

void Generator::resize(int i)
{
    auto& model = slots_[z(i)].model;
    sync(i);
    auto step = collective(i, random_.chance(75) || avoid_.preallocate ? Do::SetSize : Do::Preallocate);
    step.size = random_.between(0, model.size() + 500);
    if (step.what == Do::Preallocate) step.size = std::max<std::int64_t>(step.size, 1);
    model.resize(step.what == Do::SetSize ? step.size : std::max(step.size, model.size()));
    expect_positions(step);
    step.text = (step.what == Do::SetSize ? "set_size " : "preallocate ") + s(step.size);
    look_at_file(step);
    push(step);
    sync(i);
}

void Generator::atomicity(int i)
{
    auto& model = slots_[z(i)].model;
    auto step = collective(i, Do::Atomicity);
    model.atomic = !model.atomic;
    step.size = model.atomic ? 1 : 0;
    expect_positions(step);
    step.text = "set_atomicity " + s(step.size);
    push(step);
}

void Generator::set_info(int i)
{
    auto step = collective(i, Do::SetInfo);
    step.hints.emplace_back("access_style", "write_mostly");
    expect_positions(step);
    step.text = "set_info access_style=write_mostly";
    push(step);
}

void Generator::query(int i)
{
    auto& model = slots_[z(i)].model;
    sync_if_size_is_open(i);
    auto step = collective(i, Do::Query);
    step.text = "ask for everything";
    bool const shared =
        !slots_[z(i)].wild_view && !model.sequential() && model.same_view_everywhere() && random_.chance(50);
    if (shared) step.shared = model.shared;
    for (auto rank : model.members) {
        auto& part = step.parts[z(rank)];
        auto const& v = model.view[z(rank)];
        part.offset = random_.between(0, 300);
        part.type = random_memory_type(random_, slots_[z(i)].base, static_cast<int>(random_.between(0, 2)), false);
        part.ask_byte = !model.sequential() && !slots_[z(i)].wild_view;
        part.values = {model.size(),
                       model.amode,
                       model.atomic ? 1 : 0,
                       !part.ask_byte ? 0 : extents_of(v, part.offset * v.etype->size, 1)[0].at,
                       part.type->extent(),
                       v.displacement,
                       v.etype->size,
                       v.etype->extent(),
                       v.filetype->size,
                       v.filetype->extent(),
                       static_cast<std::int64_t>(model.members.size())};
    }
    expect_positions(step);
    push(step);
}

/// A call that every rank makes wrongly in the same way.
void Generator::failing(int i)
{
    auto& slot = slots_[z(i)];
    auto& model = slot.model;
    if (model.sequential()) return query(i);
    auto const kind = random_.between(0, 9);
    if (kind <= 1) {
        auto step = collective(i, Do::Seek);
        step.fails = true;
        for (auto& part : step.parts) {
            part.whence = kind == 0 ? 12345 : MPI_SEEK_SET;
            part.offset = kind == 0 ? 0 : -5;
        }
        step.text = kind == 0 ? "seek with a whence that does not exist" : "seek to -5";
        expect_positions(step);
        push(step);
        return;
    }
    if (kind == 2) {
        auto step = collective(i, Do::SetSize);
        step.fails = true;
        step.size = -1;
        step.text = "set_size -1";
        expect_positions(step);
        push(step);
        return;
    }
    auto step = collective(i, Do::Data);
    step.fails = true;
    step.where = random_.chance(50) ? Where::At : Where::Individual;
    step.how = random_.chance(60) ? How::All : random_.chance(50) ? How::Blocking : How::Nonblocking;
    step.write = !model.writes()  ? !avoid_.failing_accesses
                 : !model.reads() ? avoid_.failing_accesses
                                  : random_.chance(50);
    bool const by_mode = !avoid_.failing_accesses && (!model.writes() || !model.reads());
    if (avoid_.failing_accesses) {
        step.where = Where::Individual;
        step.how = How::Blocking;
    }
    auto const wrong = by_mode ? 0 : step.where == Where::At ? random_.between(1, 2) : 1;
    step.text = std::string(step.write ? "write" : "read") + name_of(step.where, step.how) +
                (wrong == 0   ? ", which the mode forbids"
                 : wrong == 1 ? ", count -1"
                              : ", offset -1");
    for (auto& part : step.parts) {
        part.type = slot.base;
        part.count = static_cast<int>(model.view[z(model.members.front())].etype->size / slot.base->size);
        fill_buffer(part);
        part.after = part.buffer;
        if (wrong == 1) part.count = -1;
        if (wrong == 2) part.offset = -1;
    }
    expect_positions(step);
    push(step);
}

void Generator::null_file(int i)
{
    auto step = collective(i, Do::Null);
    step.fails = true;
    step.size = random_.between(0, 5);
    expect_positions(step);
    step.text = "call " + s(step.size) + " on MPI_FILE_NULL";
    push(step);
}

Case make_case(std::uint64_t seed, int ranks, int me, Avoid const& avoid)
{
    return Generator(seed, ranks, me, avoid).make();
}

}  // namespace fuzz
