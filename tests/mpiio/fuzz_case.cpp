// See fuzz_case.hpp.
#include "fuzz_case.hpp"

#include <algorithm>
#include <numeric>

namespace fuzz {
namespace {

constexpr std::int64_t longest_file = 60000;
constexpr std::int64_t guard = 48;

std::size_t z(int i)
{
    return static_cast<std::size_t>(i);
}
std::string s(std::int64_t value)
{
    return std::to_string(value);
}

Segments bytes_in_memory(Type const& type, std::int64_t count)
{
    Segments all;
    for (std::int64_t i = 0; i < count; ++i)
        for (auto const& piece : type.segments) all.push_back({i * type.extent() + piece.at, piece.length});
    return all;
}

char const* name_of(Where where, How how)
{
    static constexpr char const* names[3][5] = {
        {"_at", "_at, nonblocking", "_at_all", "_at_all, nonblocking", "_at_all, split"},
        {"", ", nonblocking", "_all", "_all, nonblocking", "_all, split"},
        {"_shared", "_shared, nonblocking", "_ordered", "?", "_ordered, split"}};
    return names[static_cast<int>(where)][static_cast<int>(how)];
}

std::string describe(View const& view)
{
    return "displacement " + s(view.displacement) + ", etype " + view.etype->text + ", filetype " + view.filetype->text;
}

bool ascending(Type const& type)
{
    for (std::size_t k = 1; k < type.segments.size(); ++k)
        if (type.segments[k].at < type.segments[k - 1].at + type.segments[k - 1].length) return false;
    return true;
}

/// Letters for what has been seen to confuse MPI libraries.
std::string features_of(Step const& step, Model const& model)
{
    std::string letters;
    auto add = [&](bool there, char letter) {
        if (there && letters.find(letter) == std::string::npos) letters += letter;
    };
    for (auto rank : model.members) {
        auto const& part = step.parts[z(rank)];
        auto const& view = model.view[z(rank)];
        if (!part.takes_part) continue;
        auto const& type = *part.type;
        auto const& file = *view.filetype;
        auto const bytes = part.count * type.size;
        add(bytes == 0, '0');
        add(part.bottom, 'B');
        add(!step.write && part.moved < bytes, 'E');
        add(file.segments.size() != 1 || file.extent() != file.size, 'F');
        add(file.lower != 0, 'L');
        add(!view.filetype->segments.empty() && view.filetype->segments.front().at != 0, 'S');
        add(view.etype->size != view.etype->extent(), 'G');
        if (bytes == 0) continue;
        add(type.segments.size() != 1 || (type.extent() != type.size && part.count > 1), 'm');
        add(!ascending(type) || type.extent() < span_of(type, 1).length, 'd');
        add(type.segments.front().at < 0 || span_of(type, 1).at < 0, 'n');
        add(type.lower != 0, 'l');
    }
    std::sort(letters.begin(), letters.end());
    return letters;
}

class Generator {
public:
    Generator(std::uint64_t seed, int ranks, int me, Avoid const& avoid)
        : random_(seed * 0x2545f4914f6cdd1dU + 17), ranks_(ranks), me_(me), avoid_(avoid)
    {
        out_.seed = seed;
    }

    Case make()
    {
        auto const files = random_.chance(20) ? 2 : 1;
        for (int i = 0; i < files; ++i) {
            Slot slot;
            slot.model.exists = random_.chance(65);
            if (slot.model.exists) slot.model.bytes = noise(random_.between(0, random_.chance(20) ? 12000 : 1500));
            slot.model.defined.assign(slot.model.bytes.size(), 1);
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

private:
    struct Slot {
        Model model;
        TypePtr base = named(MPI_BYTE, "BYTE", 1);
        std::vector<Part> shape;  ///< types and counts of the last collective access
        bool shape_usable = false;
    };

    Bytes noise(std::int64_t length)
    {
        Bytes bytes(static_cast<std::size_t>(length));
        Random stream(random_.next());
        for (auto& byte : bytes) byte = static_cast<unsigned char>(stream.next() >> 20U);
        return bytes;
    }

    Step& push(Step step)
    {
        step.parts.resize(z(ranks_));
        out_.steps.push_back(std::move(step));
        return out_.steps.back();
    }

    Step collective(int i, Do what)
    {
        Step step;
        step.what = what;
        step.file = i;
        step.parts.resize(z(ranks_));
        for (auto rank : slots_[z(i)].model.members) step.parts[z(rank)].takes_part = true;
        return step;
    }

    /// Expected of every step on an open file: where the pointers are afterwards.
    void expect_positions(Step& step) const
    {
        auto const& model = slots_[z(step.file)].model;
        for (int rank = 0; rank < ranks_; ++rank) step.parts[z(rank)].position = model.position[z(rank)];
    }

    void look_at_file(Step& step) const
    {
        auto const& model = slots_[z(step.file)].model;
        step.look_at_file = true;
        step.exists = model.exists;
        step.contents = std::make_shared<Bytes const>(model.bytes);
        step.defined = std::make_shared<Bytes const>(model.defined);
    }

    void open(int i)
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

    void close(int i)
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

    void sync(int i)
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

    void sync_if_size_is_open(int i)
    {
        auto const& model = slots_[z(i)].model;
        for (auto rank : model.members)
            if (model.size_needs_sync(rank)) return sync(i);
    }

    void one_step(int i)
    {
        auto const& model = slots_[z(i)].model;
        auto const what = random_.between(0, 99);
        if (what < 20 && !model.sequential()) return view(i);
        if (what < 72) return data(i);
        if (what < 78 && !model.sequential()) return seek(i);
        if (what < 84) return query(i);
        if (what < 86) return sync(i);
        if (what < 89 && !avoid_.shared_pointers && !model.sequential() && model.same_view_everywhere())
            return seek_shared(i);
        if (what < 92 && model.writes() && !model.sequential()) return resize(i);
        if (what < 93 && !avoid_.atomic_mode) return atomicity(i);
        if (what < 94) return set_info(i);
        if (what < 98) return failing(i);
        if (what < 99) return null_file(i);
        return data(i);
    }

    TypePtr random_etype(Slot& slot)
    {
        slot.base = random_named(random_);
        auto const kind = random_.between(0, 99);
        if (kind < (avoid_.nested_bounds ? 75 : 60)) return slot.base;
        if (kind < 85 || avoid_.nested_bounds) return contiguous(static_cast<int>(random_.between(1, 5)), slot.base);
        return random_file_type(random_, slot.base, 1, avoid_.nested_bounds);
    }

    /// What applications do: the ranks' data alternates, or is a part each of one array.
    void interleaved(std::vector<View>& views, std::vector<int> const& members, TypePtr const& etype)
    {
        auto const n = static_cast<int>(members.size());
        auto const block = static_cast<int>(random_.between(1, 6));
        auto const times = static_cast<int>(random_.between(1, 6));
        auto const start = random_.between(0, 3) * 16;
        auto const kind = random_.between(0, 4);
        auto const order = random_.chance(60) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        auto const width = block * n + (random_.chance(20) ? 1 : 0);
        for (int k = 0; k < n; ++k) {
            View view{start, etype, etype};
            if (kind == 0) {
                view.displacement += k * block * etype->extent();
                view.filetype = resized(contiguous(block, etype), 0, n * block * etype->extent());
            } else if (kind == 1) {
                view.displacement += k * block * etype->extent();
                view.filetype = resized(vector(times, block, n * block, etype), 0, times * n * block * etype->extent());
            } else if (kind == 2) {
                view.filetype = subarray({times, width}, {times, block}, {0, k * block}, order, etype);
            } else if (kind == 3) {
                view.filetype = subarray({2, n * block, times}, {2, block, times}, {0, k * block, 0}, order, etype);
            } else {
                view.filetype = darray(k, {times, n * block}, {0, random_of_case_ ? block : -1}, {1, n}, order, etype);
            }
            if (etype->segments.empty() || view.filetype->size == 0) view.filetype = etype;
            views[z(members[z(k)])] = view;
        }
    }

    void view(int i)
    {
        auto& slot = slots_[z(i)];
        auto& model = slot.model;
        auto views = model.view;
        auto const how = random_.between(0, 99);
        if (how < 15) {  // the same again
        } else if (how < 28) {
            auto const shift = random_.between(0, 40) * 8;
            for (auto& v : views) v.displacement = (v.displacement + shift) % 8192;
        } else {
            auto const etype = random_etype(slot);
            random_of_case_ = random_.chance(50);
            if (how < 40) {
                auto const displacement = random_.between(0, 400);
                for (auto& v : views) v = {displacement, etype, etype};
            } else if (how < 70) {
                interleaved(views, model.members, etype);
            } else if (how < 88) {
                auto const type =
                    random_file_type(random_, etype, static_cast<int>(random_.between(1, 3)), avoid_.nested_bounds);
                auto const displacement = random_.between(0, 100);
                auto const apart = random_.chance(40) ? random_.between(0, 600) : 0;
                for (int r = 0; r < ranks_; ++r) views[z(r)] = {displacement + r * apart, etype, type};
            } else {
                for (auto& v : views)
                    v = {random_.between(0, 600), etype,
                         random_file_type(random_, etype, static_cast<int>(random_.between(0, 3)),
                                          avoid_.nested_bounds)};
            }
            slot.shape_usable = false;
        }
        auto step = collective(i, Do::View);
        model.set_view(views);
        expect_positions(step);
        step.text = "set_view";
        for (auto rank : model.members) {
            step.parts[z(rank)].view = views[z(rank)];
            step.text += "\n      rank " + s(rank) + ": " + describe(views[z(rank)]);
        }
        if (model.same_view_everywhere() && model.members.size() > 1)
            step.text = "set_view, all ranks: " + describe(views[z(model.members.front())]);
        push(step);
    }

    /// A memory type and a count that hold a whole number of etypes.
    void choose_memory(Slot const& slot, View const& view, bool write, Part& part)
    {
        auto const esize = view.etype->size;
        auto const wanted = [&]() -> std::int64_t {
            auto const kind = random_.between(0, 99);
            if (kind < 12) return 0;
            if (kind < 70) return random_.between(1, 250);
            if (kind < 94) return random_.between(1, 2000);
            return random_.between(1, 10000);
        }();
        auto leaf = slot.base;
        if (leaf->size == 1 && random_.chance(50)) leaf = random_named(random_);
        auto const depth = random_.chance(30) ? 0 : random_.between(1, 3);
        part.type = random_memory_type(random_, leaf, static_cast<int>(depth), avoid_.nested_bounds);
        auto const settle = [&] {
            auto const unit = std::lcm(part.type->size, esize);
            part.count = static_cast<int>(unit / part.type->size * ((wanted + unit - 1) / unit));
            return unit <= 4000 && part.count <= 20000 && span_of(*part.type, part.count).length <= 80000 &&
                   (write || !overlaps(*part.type, part.count));
        };
        if (!settle()) {
            part.type = slot.base;
            if (!settle()) part.count = 0;
        }
        if (random_.chance(2) && !avoid_.empty_types) {
            part.type = contiguous(0, leaf);
            part.count = static_cast<int>(random_.between(0, 3));
        }
        part.bottom = random_.chance(6) && !avoid_.nested_bounds;
        part.freed_early = random_.chance(30);
    }

    /// An offset in etypes at which `bytes` bytes of the view end before the longest file does; -1 if there is none.
    std::int64_t random_offset(Model const& model, View const& view, std::int64_t bytes, bool write)
    {
        auto const esize = view.etype->size;
        auto const near_end = end_in_view(view, model.size());
        for (int tries = 0; tries < 4; ++tries) {
            auto const most = tries == 3 ? 0
                              : write    ? near_end + 200 / esize
                                         : near_end + (random_.chance(20) ? 20 : 0);
            auto const offset = random_.chance(25) ? 0 : random_.between(0, most);
            auto const extents = extents_of(view, offset * esize, bytes);
            if (extents.empty() || extents.back().at + extents.back().length <= longest_file) return offset;
        }
        return -1;
    }

    static bool overlap(Segments const& a, Segments const& b)
    {
        std::size_t i = 0;
        std::size_t k = 0;
        while (i < a.size() && k < b.size()) {
            if (a[i].at + a[i].length <= b[k].at)
                ++i;
            else if (b[k].at + b[k].length <= a[i].at)
                ++k;
            else
                return true;
        }
        return false;
    }

    void fill_buffer(Part& part)
    {
        auto const span = span_of(*part.type, part.count);
        part.origin = guard - span.at;
        part.buffer = noise(span.length + 2 * guard);
    }

    void choose_access(Model const& model, Step& step)
    {
        step.write = model.writes() && (!model.reads() || random_.chance(50));
        auto const how = random_.between(0, 99);
        bool const shared =
            model.sequential() || (model.same_view_everywhere() && !avoid_.shared_pointers && how >= 82);
        if (shared) {
            step.where = Where::Shared;
            step.how = how % 5 == 0   ? How::Blocking
                       : how % 5 == 1 ? How::Nonblocking
                       : how % 5 == 2 ? How::Split
                                      : How::All;
        } else {
            step.where = random_.chance(55) ? Where::At : Where::Individual;
            step.how = how < 60   ? How::All
                       : how < 70 ? How::Split
                       : how < 76 ? How::NonblockingAll
                       : how < 90 ? How::Blocking
                                  : How::Nonblocking;
            if (avoid_.nonblocking_collectives && step.how == How::NonblockingAll) step.how = How::All;
        }
    }

    void choose_participants(Model const& model, Step& step)
    {
        auto const& members = model.members;
        bool const collective = step.how == How::All || step.how == How::NonblockingAll || step.how == How::Split;
        for (auto rank : members) step.parts[z(rank)].takes_part = collective || random_.chance(60);
        if (step.where == Where::Shared && !collective) {  // the order of several is not determined
            for (auto& part : step.parts) part.takes_part = false;
            step.parts[z(members[z(static_cast<int>(random_.between(0, static_cast<int>(members.size()) - 1)))])]
                .takes_part = true;
        }
    }

    void data(int i)
    {
        auto& slot = slots_[z(i)];
        auto& model = slot.model;
        if (!model.sequential() && random_.chance(20)) seek_apart(i);

        auto step = collective(i, Do::Data);
        choose_access(model, step);
        choose_participants(model, step);
        bool const again = slot.shape_usable && random_.chance(40) && step.how != How::Blocking;
        bool const equal_contents = step.write && step.how == How::All && !avoid_.equal_writes && random_.chance(4);
        bool const packed = random_.chance(50);
        auto const content_seed = random_.next();
        std::int64_t packed_at = -1;
        std::vector<Segments> taken;
        std::vector<Segments> extents(z(ranks_));
        auto shared = model.shared;
        for (auto rank : model.members) {
            auto& part = step.parts[z(rank)];
            if (!part.takes_part) continue;
            auto const& v = model.view[z(rank)];
            auto const esize = v.etype->size;
            if (again) {
                part.type = slot.shape[z(rank)].type;
                part.count = slot.shape[z(rank)].count;
                part.bottom = slot.shape[z(rank)].bottom;
            }
            if (!part.type || (!step.write && overlaps(*part.type, part.count)))
                choose_memory(slot, v, step.write, part);
            if (equal_contents && overlaps(*part.type, part.count)) part.count = 0;
            for (int tries = 0; tries < 4; ++tries) {
                auto const bytes = part.count * part.type->size;
                if (step.where == Where::At) {
                    if (packed && packed_at < 0)
                        packed_at = std::max<std::int64_t>(0, random_offset(model, v, bytes, step.write));
                    part.offset = packed && tries == 0 ? packed_at : random_offset(model, v, bytes, step.write);
                } else {
                    part.offset = step.where == Where::Individual ? model.position[z(rank)] : shared;
                }
                if (part.offset < 0) part.offset = part.count = 0;
                extents[z(rank)] = extents_of(v, part.offset * esize, part.count * part.type->size);
                auto const& mine = extents[z(rank)];
                if (avoid_.short_reads && !step.write && !mine.empty() && step.how != How::Blocking &&
                    step.how != How::All && mine.back().at + mine.back().length > model.size()) {
                    part.count = 0;
                    continue;
                }
                bool bad = !mine.empty() && mine.back().at + mine.back().length > longest_file;
                if (step.write && !equal_contents)
                    for (auto const& other : taken) bad = bad || overlap(mine, other);
                if (!bad) break;
                if (tries == 2 || step.where != Where::At) part.count = 0;
            }
            if (packed && packed_at >= 0) packed_at += part.count * part.type->size / esize;
            if (step.where == Where::Shared) shared += part.count * part.type->size / esize;
            if (avoid_.types_freed_early && step.how == How::NonblockingAll) part.freed_early = part.bottom = false;
            taken.push_back(extents[z(rank)]);
        }
        if (avoid_.short_reads && step.how == How::Split)
            for (auto rank : model.members)
                if (step.parts[z(rank)].count == 0) step.how = How::All;
        if (avoid_.short_reads && step.how == How::Nonblocking)
            for (auto rank : model.members)
                if (step.parts[z(rank)].count == 0) step.parts[z(rank)].takes_part = false;
        if (step.how == How::All) {
            slot.shape = step.parts;
            slot.shape_usable = true;
        }
        for (auto rank : model.members)
            if (model.needs_sync(rank, step.write, extents[z(rank)])) {
                sync(i);
                break;
            }
        expect_data(step, model, extents, equal_contents ? content_seed : 0);
        push(step);
    }

    /// The buffers, what the access does to them and to the model, and its description.
    void expect_data(Step& step, Model& model, std::vector<Segments> const& extents, std::uint64_t equal_contents)
    {
        step.text = std::string(step.write ? "write" : "read") + name_of(step.where, step.how);
        for (auto rank : model.members) {
            auto& part = step.parts[z(rank)];
            if (!part.takes_part) continue;
            fill_buffer(part);
            auto const memory = bytes_in_memory(*part.type, part.count);
            auto const etypes = part.count * part.type->size / model.view[z(rank)].etype->size;
            if (step.write) {
                if (equal_contents != 0) {
                    Bytes data;
                    for (auto const& [at, length] : extents[z(rank)])
                        for (auto k = at; k < at + length; ++k)
                            data.push_back(static_cast<unsigned char>(
                                Random(equal_contents + static_cast<std::uint64_t>(k)).next()));
                    auto from = data.begin();
                    for (auto const& [at, length] : memory) {
                        std::copy_n(from, length, part.buffer.begin() + part.origin + at);
                        from += length;
                    }
                }
                Bytes data;
                for (auto const& [at, length] : memory) {
                    auto const first = part.buffer.begin() + part.origin + at;
                    data.insert(data.end(), first, first + length);
                }
                model.write(rank, extents[z(rank)], data);
                part.moved = static_cast<std::int64_t>(data.size());
                part.after = part.buffer;
            } else {
                Bytes data;
                Bytes sure;
                part.moved = model.read(rank, extents[z(rank)], data, sure);
                if (rank == me_) expect_read(part, memory, data, sure);
            }
            step.text += "\n      rank " + s(rank) + ": " + s(part.count) + " of " + part.type->text;
            if (step.where == Where::At) step.text += " at " + s(part.offset);
            if (part.bottom) step.text += ", from MPI_BOTTOM";
            if (part.freed_early) step.text += ", type freed early";
            if (step.where == Where::Individual) model.position[z(rank)] += etypes;
            if (step.where == Where::Shared) model.shared += etypes;
        }
        step.features = features_of(step, model);
        for (auto a : model.members)
            for (auto b : model.members)
                if (a < b && step.features.find('O') == std::string::npos && overlap(extents[z(a)], extents[z(b)]))
                    step.features += 'O';  // ranks that meet in the file
        expect_positions(step);
        if (step.where == Where::Shared && !model.sequential()) step.shared = model.shared;
        if (step.write) look_at_file(step);
    }

    static void expect_read(Part& part, Segments const& memory, Bytes const& data, Bytes const& sure)
    {
        part.after = part.buffer;
        std::size_t k = 0;
        for (auto const& [at, length] : memory)
            for (auto b = at; b < at + length; ++b, ++k) {
                if (k < data.size()) part.after[static_cast<std::size_t>(part.origin + b)] = data[k];
                if (k >= data.size() || sure[k] == 0) part.beyond.push_back({part.origin + b, 1});
            }
    }

    /// Each rank to its own place, one behind the other, as programs without views do.
    void seek_apart(int i)
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

    void seek(int i)
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
            auto const kind = random_.between(0, 2);
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

    void seek_shared(int i)
    {
        auto& model = slots_[z(i)].model;
        sync_if_size_is_open(i);
        auto step = collective(i, Do::SeekShared);
        auto const kind = random_.between(0, 2);
        auto const end = end_in_view(model.view[z(model.members.front())], model.size());
        auto const from = kind == 0 ? 0 : kind == 1 ? model.shared : end;
        step.size = random_.between(-std::min<std::int64_t>(from, 60), 60);
        for (auto& part : step.parts) part.whence = kind == 0 ? MPI_SEEK_SET : kind == 1 ? MPI_SEEK_CUR : MPI_SEEK_END;
        step.text = "seek_shared by " + s(step.size) + " from the " +
                    (kind == 0   ? "start"
                     : kind == 1 ? "position"
                                 : "end");
        if (kind == 2 && model.size() < model.view[z(model.members.front())].displacement) step.features = "V";
        model.shared = from + step.size;
        step.shared = model.shared;
        expect_positions(step);
        push(step);
    }

    void resize(int i)
    {
        auto& model = slots_[z(i)].model;
        sync(i);
        auto step = collective(i, random_.chance(75) || avoid_.preallocate ? Do::SetSize : Do::Preallocate);
        step.size = random_.between(0, model.size() + 500);
        if (step.what == Do::Preallocate) step.size = std::max<std::int64_t>(step.size, 1);
        model.resize(step.what == Do::SetSize ? step.size : std::max(step.size, model.size()));
        expect_positions(step);
        step.text = (step.what == Do::SetSize ? "set_size " : "preallocate ") + s(step.size);
        push(step);
        sync(i);
    }

    void atomicity(int i)
    {
        auto& model = slots_[z(i)].model;
        auto step = collective(i, Do::Atomicity);
        model.atomic = !model.atomic;
        step.size = model.atomic ? 1 : 0;
        expect_positions(step);
        step.text = "set_atomicity " + s(step.size);
        push(step);
    }

    void set_info(int i)
    {
        auto step = collective(i, Do::SetInfo);
        step.hints.emplace_back("access_style", "write_mostly");
        expect_positions(step);
        step.text = "set_info access_style=write_mostly";
        push(step);
    }

    void query(int i)
    {
        auto& model = slots_[z(i)].model;
        sync_if_size_is_open(i);
        auto step = collective(i, Do::Query);
        step.text = "ask for everything";
        bool const shared =
            !avoid_.shared_pointers && !model.sequential() && model.same_view_everywhere() && random_.chance(50);
        if (shared) step.shared = model.shared;
        for (auto rank : model.members) {
            auto& part = step.parts[z(rank)];
            auto const& v = model.view[z(rank)];
            part.offset = random_.between(0, 300);
            part.type = random_memory_type(random_, slots_[z(i)].base, static_cast<int>(random_.between(0, 2)),
                                           avoid_.nested_bounds);
            part.values = {model.size(),
                           model.amode,
                           model.atomic ? 1 : 0,
                           model.sequential() ? 0 : extents_of(v, part.offset * v.etype->size, 1)[0].at,
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
    void failing(int i)
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

    void null_file(int i)
    {
        auto step = collective(i, Do::Null);
        step.fails = true;
        step.size = random_.between(0, 5);
        expect_positions(step);
        step.text = "call " + s(step.size) + " on MPI_FILE_NULL";
        push(step);
    }

    Random random_;
    int ranks_;
    int me_;
    Avoid avoid_;
    std::vector<Slot> slots_;
    Case out_;
    bool random_of_case_ = false;
};

}  // namespace

Case make_case(std::uint64_t seed, int ranks, int me, Avoid const& avoid)
{
    return Generator(seed, ranks, me, avoid).make();
}

}  // namespace fuzz
