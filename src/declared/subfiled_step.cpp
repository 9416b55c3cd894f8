#include "declared/subfiled_step.hpp"

#include <utility>

#include "declared/subfiles.hpp"

namespace tapioca::declared {

namespace {

using pattern::Layout;
using pattern::Variable;

/// The same layout, with the pieces one after the other from `begin` on: in the file, or in the buffer.
enum class Side { file, buffer };
Layout packed(Layout layout, Side side, std::int64_t begin)
{
    std::int64_t bytes = 0;
    for (auto& entry : layout.entries) {
        (side == Side::file ? entry.offset : entry.buffer) = bytes;
        bytes += entry.length;
    }
    (side == Side::file ? layout.base : layout.buffer) = begin;
    for (auto d = layout.dimensions.rbegin(); d != layout.dimensions.rend(); ++d) {
        (side == Side::file ? d->step : d->buffer_step) = bytes;
        bytes *= d->count;
    }
    if (side == Side::buffer) layout.in_order = true;
    return layout;
}

std::int64_t bytes_of(Layout const& layout)
{
    std::int64_t bytes = 0;
    for (auto const& entry : layout.entries) bytes += entry.length;
    return bytes * layout.tiles();
}

std::shared_ptr<Variable const> shifted(Variable const& variable, std::int64_t by)
{
    auto layouts = variable.layouts();
    for (auto& layout : layouts) layout.base += by;
    return std::make_shared<Variable const>(
        Variable(std::move(layouts), static_cast<std::int64_t>(variable.bytes())).named(variable.name()));
}

}  // namespace

ChunkPart in_order_of_memory(pattern::Variables const& variables)
{
    ChunkPart part;
    part.held = variables;
    std::uint64_t at = 0;
    for (std::size_t var = 0; var < variables.size(); ++var) {
        auto const& variable = *variables[var];
        std::vector<Extent> extents;
        if (variable.bytes() > 0)
            extents.push_back({static_cast<std::int64_t>(at), static_cast<std::int64_t>(variable.bytes())});
        part.stored.push_back(std::make_shared<Variable const>(Variable::from_extents(var, extents, variable.name())));
        at += variable.bytes();
    }
    return part;
}

ChunkPart in_order_of_file(pattern::Variables const& variables)
{
    ChunkPart part;
    std::int64_t at = 0;  // in the rank's part of the chunk
    for (auto const& variable : variables) {
        std::vector<Layout> stored;
        std::vector<Layout> held;
        std::int64_t within = 0;  // the variable's part
        for (auto const& layout : variable->layouts()) {
            if (layout.pieces() == 0) continue;
            stored.push_back(packed(layout, Side::file, at + within));
            held.push_back(packed(layout, Side::buffer, within));
            within += bytes_of(layout);
        }
        part.stored.push_back(std::make_shared<Variable const>(Variable(std::move(stored), within)));
        part.held.push_back(std::make_shared<Variable const>(Variable(std::move(held), within)));
        at += within;
    }
    return part;
}

SubfiledStep::SubfiledStep(GroupSubfile& group, ChunkPart const& part, bool disjoint)
    : subfile_(&group), description_{{}, disjoint}
{
    auto const& subfile = group.file();
    std::uint64_t mine = 0;
    for (auto const& variable : part.stored) mine += variable->bytes();
    auto const [before, total] = comm::prefix_and_total(group.group(), static_cast<std::int64_t>(mine));
    auto entries = subfile::encode_part(part.held, static_cast<std::uint64_t>(before));
    auto const status = subfile->session->agreement().agree(entries ? core::Status() : tl::unexpected(entries.error()));
    subfile->raise_if("declare", status);
    for (auto const& bytes : comm::collect(group.group(), *entries))
        description_.entries.insert(description_.entries.end(), bytes.begin(), bytes.end());
    group_bytes_ = static_cast<std::uint64_t>(total);
    pattern::Variables stored;
    for (auto const& variable : part.stored) stored.push_back(shifted(*variable, before));
    step_ = declare(subfile, stored);
    form_ = form_in(group);
}

/// The form of this step in the set: one that an earlier step like this has, so that it is written at the same place,
/// or a new one. Collective over the group.
std::uint32_t SubfiledStep::form_in(GroupSubfile& subfile) const
{
    auto& writer = subfile.writer();
    auto const known = comm::tell(subfile.group(), writer.find_form(description_));
    if (known >= 0) return static_cast<std::uint32_t>(known);
    auto const form = writer.add_form(group_bytes_);
    writer.describe(form, description_);
    return form;
}

void SubfiledStep::go_to(GroupSubfile& subfile, std::int64_t shift)
{
    auto& writer = subfile.writer();
    if (&step_->file() != subfile.file().get()) {
        step_->retarget(subfile.file());
        subfile_ = &subfile;
        form_ = form_in(subfile);
    }
    shift_ = shift;
    step_->rebase(static_cast<std::int64_t>(writer.position_of(form_, shift)));
}

core::Status SubfiledStep::note()
{
    return subfile_->writer().note_chunk(form_, shift_);
}

core::Status write_chunks(FileState& file, pattern::Variables const& variables, std::byte* data)
{
    file.subfiles->advance();
    auto& subfile = file.subfiles->of_step(UINT64_MAX);
    auto const status = subfile.within_group([&]() -> core::Status {
        SubfiledStep chunk(subfile, in_order_of_file(variables), true);  // a flush writes every byte once
        subfile.make_room(chunk.bytes());
        chunk.go_to(subfile, 0);
        for (std::size_t var = 0; var < variables.size(); ++var)
            if (variables[var]->bytes() > 0) chunk.step().supply(var, data, variables[var]->bytes(), Op::write);
        chunk.step().start(false);
        (void)chunk.step().wait();
        return chunk.note();
    });
    return file.session->agreement().agree(status);
}

}  // namespace tapioca::declared
