// Makes file views; see fuzz_generator.hpp.
#include "fuzz_generator.hpp"

namespace fuzz {

namespace {

std::string describe(View const& view)
{
    return "displacement " + s(view.displacement) + ", etype " + view.etype->text + ", filetype " + view.filetype->text;
}

}  // namespace

TypePtr Generator::random_etype(Slot& slot, bool simple)
{
    slot.base = random_named(random_);
    auto const kind = random_.between(0, 99);
    if (kind < (simple ? 75 : 50)) return slot.base;
    if (kind < 70 || simple) return contiguous(static_cast<int>(random_.between(1, 5)), slot.base);
    return random_file_type(random_, slot.base, static_cast<int>(random_.between(1, 2)), false, avoid_.odd_views);
}

std::vector<View> interleaved(Random& random, int n, TypePtr const& etype, bool careful)
{
    auto const block = static_cast<int>(random.between(1, 6));
    auto const times = static_cast<int>(random.between(1, 6));
    auto const start = random.between(0, 3) * 16;
    auto const kind = random.between(0, careful && !etype->named ? 3 : 4);
    bool const cyclic = random.chance(50);
    auto const order = random.chance(60) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    auto const width = block * n + (random.chance(20) ? 1 : 0);
    std::vector<View> views;
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
            view.filetype = darray(k, {times, n * block}, {0, cyclic ? block : -1}, {1, n}, order, etype);
        }
        if (etype->segments.empty() || view.filetype->size == 0) view.filetype = etype;
        views.push_back(view);
    }
    return views;
}

void Generator::view(int i)
{
    auto& slot = slots_[z(i)];
    auto& model = slot.model;
    auto views = model.view;
    bool wild = slot.wild_view;
    auto const how = random_.between(0, 99);
    if (how < 15) {  // the same again
    } else if (how < 28) {
        auto const shift = random_.between(0, 40) * 8;
        for (auto& v : views) v.displacement = (v.displacement + shift) % 8192;
    } else {
        wild = !model.atomic && random_.chance(40);
        auto const etype = random_etype(slot, !wild);
        if (how < 40) {
            auto const displacement = random_.between(0, 400);
            for (auto& v : views) v = {displacement, etype, etype};
        } else if (how < 70) {
            auto const parts = interleaved(random_, static_cast<int>(model.members.size()), etype, avoid_.odd_views);
            for (std::size_t k = 0; k < parts.size(); ++k) views[z(model.members[k])] = parts[k];
        } else if (how < 88) {
            auto const type =
                random_file_type(random_, etype, static_cast<int>(random_.between(1, 3)), !wild, avoid_.odd_views);
            auto const displacement = random_.between(0, 100);
            auto const apart = random_.chance(40) ? random_.between(0, 600) : 0;
            for (int r = 0; r < ranks_; ++r) views[z(r)] = {displacement + r * apart, etype, type};
        } else {
            for (auto& v : views)
                v = {
                    random_.between(0, 600), etype,
                    random_file_type(random_, etype, static_cast<int>(random_.between(0, 3)), !wild, avoid_.odd_views)};
        }
        slot.shape_usable = false;
    }
    slot.wild_view = wild;
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

}  // namespace fuzz
