#include "subfile/set_writer.hpp"

#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "subfile/directory_files.hpp"
#include "target/target.hpp"

namespace tapioca::subfile {

std::string SetWriter::path() const
{
    return directory() + "/" + subfile_name(place_.subfile);
}

std::uint32_t SetWriter::add_form(std::uint64_t data_bytes)
{
    forms_.push_back(data_bytes);
    return static_cast<std::uint32_t>(forms_.size() - 1);
}

SetWriter::DescriptionKey SetWriter::key_of(Description const& description)
{
    auto const& entries = description.entries;
    return {stage::checksum_of(entries.data(), entries.size(), 1),
            stage::checksum_of(entries.data(), entries.size(), 2), entries.size(), description.disjoint ? 1U : 0U};
}

void SetWriter::describe(std::uint32_t form, Description description)
{
    if (!place_.first) return;
    described_.emplace(key_of(description), form);
    undescribed_[form] = std::move(description);
}

std::int64_t SetWriter::find_form(Description const& description) const
{
    auto const found = place_.first ? described_.find(key_of(description)) : described_.end();
    return found == described_.end() ? -1 : static_cast<std::int64_t>(found->second);
}

std::uint64_t SetWriter::position_of(std::uint32_t form, std::int64_t shift)
{
    auto const [at, is_new] = positions_.try_emplace({form, shift}, end_);
    if (is_new) {
        auto const block = static_cast<std::uint64_t>(std::max<std::int64_t>(place_.block_bytes, 1));
        end_ += (forms_[form] + block - 1) / block * block;
    }
    return at->second;
}

core::Status SetWriter::note_chunk(std::uint32_t form, std::int64_t shift)
{
    if (!place_.first || forms_[form] == 0) return {};
    // One after the other: readers may have taken a complete record, so nothing else may ever stand in its place.
    if (auto const found = undescribed_.find(form); found != undescribed_.end()) {
        auto const status = append(form_record(place_.subfile, form, forms_[form], found->second.entries,
                                               place_.identity, found->second.disjoint));
        if (!status) return status;
        undescribed_.erase(found);
    }
    auto const chunk = chunk_record({{}, place_.subfile, form, epoch_, shift, positions_.at({form, shift}), 1, 0, 0, 0},
                                    place_.identity);
    auto const status = append(chunk);
    has_chunks_ = has_chunks_ || status;
    return status;
}

core::Status SetWriter::note_cut(std::int64_t size)
{
    return append(cut_record(epoch_, size, place_.identity));
}

core::Status SetWriter::append(std::span<std::byte const> records)
{
    if (!journal_) {
        auto const name = journal_name(journal_number_);
        auto const directory = open_directory(place_.directory);
        if (!directory) return tl::unexpected(directory.error());
        auto file = open_in(directory->get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL);
        if (!file) return tl::unexpected(file.error());
        SetHead head = {};
        std::memcpy(head.magic, journal_magic, sizeof head.magic);
        head.version = format_version;
        head.bytes = sizeof head;
        head.identity = place_.identity;
        head.generation = place_.generation;
        head.subfiles = journal_number_;
        put_text(head.host, core::host_name());
        seal(head);
        if (auto status = core::write_all(file->get(), 0, std::as_bytes(std::span(&head, 1)), "the journal"); !status) {
            (void)::unlinkat(directory->get(), name.c_str(), 0);  // the next attempt begins again
            return status;
        }
        journal_ = std::move(*file);
        name_is_durable_ = false;
        journal_end_ = sizeof head;
    }
    // What a failed attempt has written is written over by the next one.
    auto const status = core::write_all(journal_.get(), journal_end_, records, "the journal of subfiles");
    if (status) journal_end_ += records.size();
    return status;
}

void SetWriter::move_on(std::uint32_t subfile, std::string on_tier)
{
    place_.subfile = subfile;
    place_.on_tier = std::move(on_tier);
    forms_.clear();
    undescribed_.clear();
    described_.clear();
    positions_.clear();
    end_ = 0;
    has_chunks_ = false;
}

core::Status SetWriter::sync()
{
    if (journal_ && core::uninterrupted([&] { return ::fsync(journal_.get()); }) != 0)
        return core::fail_errno(errno, "the journal of subfiles");
    if (name_is_durable_) return {};
    auto const status = target::sync_directory_of(place_.directory + "/" + journal_name(journal_number_));
    name_is_durable_ = status.has_value();
    return status;
}

core::Status SetWriter::close()
{
    if (journal_ && ::close(journal_.release()) != 0 && errno != EINTR)
        return core::fail_errno(errno, "closing the journal of subfiles");
    return {};
}

}  // namespace tapioca::subfile
