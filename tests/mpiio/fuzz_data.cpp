// Makes accesses and their required results; see fuzz_generator.hpp.
#include <algorithm>
#include <limits>
#include <numeric>

#include "fuzz_generator.hpp"

namespace fuzz {
namespace {

constexpr std::int64_t longest_file = 60000;
constexpr std::int64_t guard = 48;

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

bool by_all(How how)
{
    return how == How::All || how == How::NonblockingAll || how == How::Split;
}

void expect_read(Part& part, Segments const& memory, Bytes const& data, Bytes const& sure)
{
    part.after = part.buffer;
    std::size_t k = 0;
    for (auto const& [at, length] : memory)
        for (auto b = at; b < at + length; ++b, ++k) {
            if (k >= data.size()) {
                part.unread.push_back(part.origin + b);
                continue;
            }
            part.after[static_cast<std::size_t>(part.origin + b)] = data[k];
            if (sure[k] != Model::written)
                (sure[k] == Model::loose_hole ? part.loose_holes : part.holes).push_back(part.origin + b);
        }
}

/// MPI libraries write whole ranges of the file, holes included: in accesses in pieces, and in collective ones.
void loosen_holes(Step const& step, Model& model)
{
    auto low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = 0;
    bool pieces = step.how != How::Blocking;
    for (auto const& part : step.parts) {
        if (part.extents.empty()) continue;
        low = std::min(low, part.extents.front().at);
        high = std::max(high, part.extents.back().at + part.extents.back().length);
        pieces = pieces || part.extents.size() > 1;
    }
    if (!pieces || step.alone == Alone::Direct) return;
    for (auto at = low; at < high; ++at) {
        auto& state = model.defined[static_cast<std::size_t>(at)];
        if (step.served && state == Model::hole) state = Model::alone_loose_hole;
        if (!step.served && state != Model::written) state = Model::loose_hole;
    }
}

/// Of the parts of all ranks.
bool any_meet(Step const& step)
{
    for (std::size_t a = 0; a < step.parts.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
            if (overlap(step.parts[a].extents, step.parts[b].extents)) return true;
    return false;
}

}  // namespace

Segments bytes_in_memory(Type const& type, std::int64_t count)
{
    Segments all;
    for (std::int64_t i = 0; i < count; ++i)
        for (auto const& piece : type.segments) all.push_back({i * type.extent() + piece.at, piece.length});
    return all;
}

Bytes gather(Bytes const& buffer, std::int64_t origin, Segments const& memory)
{
    Bytes data;
    for (auto const& [at, length] : memory) {
        auto const first = buffer.begin() + origin + at;
        data.insert(data.end(), first, first + length);
    }
    return data;
}

void scatter(Bytes const& data, Bytes& buffer, std::int64_t origin, Segments const& memory)
{
    auto from = data.begin();
    for (auto const& [at, length] : memory) {
        std::copy_n(from, length, buffer.begin() + origin + at);
        from += length;
    }
}

char const* name_of(Where where, How how)
{
    static constexpr char const* names[3][5] = {
        {"_at", "_at, nonblocking", "_at_all", "_at_all, nonblocking", "_at_all, split"},
        {"", ", nonblocking", "_all", "_all, nonblocking", "_all, split"},
        {"_shared", "_shared, nonblocking", "_ordered", "?", "_ordered, split"}};
    return names[static_cast<int>(where)][static_cast<int>(how)];
}

/// A memory type and a count that hold a whole number of etypes.
void Generator::choose_memory(Slot const& slot, View const& view, Step const& step, Part& part)
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
    bool const flat = avoid_.nested_memory && step.alone == Alone::Same;
    auto const depth = random_.chance(30) ? 0 : random_.between(1, flat ? 1 : 3);
    part.type = random_memory_type(random_, leaf, static_cast<int>(depth), step.alone == Alone::Same);
    auto const settle = [&] {
        auto const unit = std::lcm(part.type->size, esize);
        part.count = static_cast<int>(unit / part.type->size * ((wanted + unit - 1) / unit));
        return unit <= 4000 && part.count <= 20000 && span_of(*part.type, part.count).length <= 80000 &&
               (step.write || !overlaps(*part.type, part.count));
    };
    if (!settle()) {
        part.type = slot.base;
        if (!settle()) part.count = 0;
    }
    if (random_.chance(2) && (step.served || !avoid_.empty_types)) {
        part.type = contiguous(0, leaf);
        part.count = static_cast<int>(random_.between(0, 3));
    }
    part.bottom = step.alone != Alone::Same && random_.chance(12);
    part.freed_early =
        random_.chance(30) && !(avoid_.types_freed_early && step.how == How::NonblockingAll && !step.alone_blocks);
}

/// An offset in etypes at which `bytes` bytes of the view end before the longest file does; -1 if there is none.
std::int64_t Generator::random_offset(Model const& model, View const& view, std::int64_t bytes, bool write)
{
    auto const esize = view.etype->size;
    auto const near_end = end_in_view(view, model.size());
    for (int tries = 0; tries < 4; ++tries) {
        auto const most = tries == 3 ? 0 : write ? near_end + 200 / esize : near_end + (random_.chance(20) ? 20 : 0);
        auto const offset = random_.chance(25) ? 0 : random_.between(0, most);
        auto const extents = extents_of(view, offset * esize, bytes);
        if (extents.empty() || extents.back().at + extents.back().length <= longest_file) return offset;
    }
    return -1;
}

bool overlap(Segments const& a, Segments const& b)
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

void Generator::fill_buffer(Part& part)
{
    auto const span = span_of(*part.type, part.count);
    part.origin = guard - span.at;
    part.buffer = noise(span.length + 2 * guard);
}

void Generator::choose_access(Slot const& slot, Step& step)
{
    auto const& model = slot.model;
    step.write = model.writes() && (!model.reads() || random_.chance(50));
    auto const how = random_.between(0, 99);
    bool const shared = model.sequential() || (model.same_view_everywhere() && !slot.wild_view && how >= 82);
    if (shared) {
        step.where = Where::Shared;
        step.how = how % 5 == 0   ? How::Blocking
                   : how % 5 == 1 ? How::Nonblocking
                   : how % 5 == 2 ? How::Split
                                  : How::All;
        if (avoid_.shared_alone && !by_all(step.how) && model.members.size() > 1) step.how = How::All;
    } else {
        step.where = random_.chance(55) ? Where::At : Where::Individual;
        bool const beside = avoid_.serves_nonblocking && model.members.size() > 1 && !model.atomic;
        step.how = how < 54   ? How::All
                   : how < 65 ? How::Split
                   : how < 76 ? How::NonblockingAll
                   : how < 90 ? How::Blocking
                              : How::Nonblocking;
        step.alone_blocks = beside && step.how == How::NonblockingAll;
        if (avoid_.nonblocking_collectives && step.how == How::NonblockingAll && !beside) step.how = How::All;
        if (slot.wild_view && step.how != How::Split && !step.alone_blocks) step.how = How::All;
        if (slot.wild_view && avoid_.pointers) step.where = Where::At;
        step.served = (step.how == How::All || step.how == How::Split || step.alone_blocks) && !model.atomic;
        if (step.served && random_.chance(60)) step.alone = Alone::Packed;
    }
}

void Generator::choose_participants(Model const& model, Step& step)
{
    auto const& members = model.members;
    bool const all = by_all(step.how);
    for (auto rank : members) step.parts[z(rank)].takes_part = all || random_.chance(60);
    if (step.where == Where::Shared && !all) {  // the order of several is not determined
        for (auto& part : step.parts) part.takes_part = false;
        step.parts[z(members[z(static_cast<int>(random_.between(0, static_cast<int>(members.size()) - 1)))])]
            .takes_part = true;
    }
}

void Generator::data(int i)
{
    auto& slot = slots_[z(i)];
    auto& model = slot.model;
    bool const no_pointers = slot.wild_view && avoid_.pointers;
    if (!model.sequential() && !no_pointers && random_.chance(20)) seek_apart(i);

    auto step = collective(i, Do::Data);
    choose_access(slot, step);
    choose_participants(model, step);
    bool const again =
        slot.shape_usable && random_.chance(40) && step.how != How::Blocking && (step.served || !slot.shape_wild);
    if (again && slot.shape_wild) step.alone = Alone::Packed;
    bool const careful = avoid_.short_reads && !step.served && step.how != How::Blocking && step.how != How::All;
    bool const may_meet = step.served || !avoid_.meeting;
    bool const equal_contents = step.write && step.how == How::All && may_meet && random_.chance(4);
    bool const packed = random_.chance(50);
    auto const content_seed = random_.next();
    std::int64_t packed_at = -1;
    std::vector<Segments> taken;
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
        if (!part.type || (!step.write && overlaps(*part.type, part.count)) ||
            (part.type->size == 0 && !step.served && avoid_.empty_types))
            choose_memory(slot, v, step, part);
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
            part.extents = extents_of(v, part.offset * esize, part.count * part.type->size);
            auto const end = part.extents.empty() ? 0 : part.extents.back().at + part.extents.back().length;
            if (careful && !step.write && end > model.size()) {
                part.count = 0;
                continue;
            }
            bool bad = end > longest_file;
            if ((step.write && !equal_contents) || !may_meet)
                for (auto const& other : taken) bad = bad || overlap(part.extents, other);
            if (!bad) break;
            if (tries == 2 || step.where != Where::At) part.count = 0;
        }
        if (packed && packed_at >= 0) packed_at += part.count * part.type->size / esize;
        if (step.where == Where::Shared) shared += part.count * part.type->size / esize;
        taken.push_back(part.extents);
    }
    if (careful)
        for (auto rank : model.members) {
            if (step.parts[z(rank)].count != 0) continue;
            if (step.how == How::Nonblocking)
                step.parts[z(rank)].takes_part = false;
            else
                step.how = How::All;
        }
    if (step.how == How::All && !step.served && step.where != Where::Shared && !model.atomic) step.served = true;
    if (step.how == How::All && step.where != Where::Shared) {
        slot.shape = step.parts;
        slot.shape_usable = true;
        slot.shape_wild = step.alone != Alone::Same;
    }
    choose_alone(slot, step);
    if (step.where == Where::Shared && by_all(step.how) && avoid_.serves_ordered && model.members.size() > 1)
        step.served = !model.atomic && !model.sequential();
    for (auto rank : model.members)
        if (model.needs_sync(rank, step.write, step.parts[z(rank)].extents)) {
            sync(i);
            break;
        }
    expect_data(step, model, equal_contents ? content_seed : 0);
    push(step);
}

/// What the MPI library alone would not survive, or would do wrongly by chance, is done without it.
void Generator::choose_alone(Slot const& slot, Step& step) const
{
    if (!step.served) return;
    bool direct = slot.wild_view || (avoid_.meeting && any_meet(step));
    for (auto const& part : step.parts) {
        if (!part.takes_part) continue;
        auto const end = part.extents.empty() ? 0 : part.extents.back().at + part.extents.back().length;
        bool const is_short = part.count == 0 || (!step.write && end > slot.model.size());
        direct = direct || (avoid_.short_reads && step.how == How::Split && is_short) ||
                 (avoid_.empty_types && part.type->size == 0);
    }
    if (direct) step.alone = Alone::Direct;
}

/// The buffers, what the access does to them and to the model, and its description.
void Generator::expect_data(Step& step, Model& model, std::uint64_t equal_contents)
{
    step.text = std::string(step.write ? "write" : "read") + name_of(step.where, step.how);
    for (auto rank : model.members) {
        auto& part = step.parts[z(rank)];
        if (!part.takes_part) continue;
        fill_buffer(part);
        auto const memory = bytes_in_memory(*part.type, part.count);
        auto const etypes = part.count * part.type->size / model.view[z(rank)].etype->size;
        if (step.write) {
            Bytes data;
            if (equal_contents != 0) {
                for (auto const& [at, length] : part.extents)
                    for (auto k = at; k < at + length; ++k)
                        data.push_back(
                            static_cast<unsigned char>(Random(equal_contents + static_cast<std::uint64_t>(k)).next()));
                scatter(data, part.buffer, part.origin, memory);
            }
            data = gather(part.buffer, part.origin, memory);
            model.write(rank, part.extents, data);
            part.moved = static_cast<std::int64_t>(data.size());
            part.after = part.buffer;
        } else {
            Bytes data;
            Bytes sure;
            part.moved = model.read(rank, part.extents, data, sure);
            if (rank == me_) expect_read(part, memory, data, sure);
        }
        step.text += "\n      rank " + s(rank) + ": " + s(part.count) + " of " + part.type->text;
        if (step.where == Where::At) step.text += " at " + s(part.offset);
        if (part.bottom) step.text += ", from MPI_BOTTOM";
        if (part.freed_early) step.text += ", type freed early";
        if (step.where == Where::Individual) model.position[z(rank)] += etypes;
        if (step.where == Where::Shared) model.shared += etypes;
    }
    if (step.write) loosen_holes(step, model);
    step.features = features_of(step, model);
    if (any_meet(step)) step.features += 'O';  // ranks that meet in the file
    expect_positions(step);
    if (step.where == Where::Shared && !model.sequential()) step.shared = model.shared;
    step.in_file = model.atomic || (step.where == Where::Shared && by_all(step.how));
    if (step.write) look_at_file(step);
}

}  // namespace fuzz
