// tapioca subfile verify: whether everything of a set is there, and what cannot be read if it is not.
#include <algorithm>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/output.hpp"
#include "subfile/coverage.hpp"
#include "subfile/directory_files.hpp"
#include "subfile_verbs.hpp"
#include "target_look.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace subfile = tapioca::subfile;

/// The number of a file whose name is written as programs write it.
std::optional<std::uint32_t> numbered(std::string const& name, std::string (*named)(std::uint32_t))
{
    auto const number = subfile::number_in(name, name.substr(0, name.find('.') + 1));
    return number && name == named(*number) ? number : std::nullopt;
}

/// Looks at everything in the directory of a set. Says what is wrong in lines, and what it has found in others.
class Verification {
public:
    Verification(OpenSet const& set, SetOnTier const& subfiles)
        : set_(set), subfiles_(subfiles), map_(set.contents->map())
    {
        struct stat stub = {};
        if (::stat(set.path.c_str(), &stub) == 0) owner_ = stub.st_uid;
    }

    core::Status look()
    {
        std::vector<std::string> names;
        auto const listed = subfile::each_name(set_.opened.get(), [&](auto const& name) { names.push_back(name); });
        if (!listed) return listed;
        std::sort(names.begin(), names.end());
        for (auto const& name : names)
            if (name != "." && name != "..") look_at(name);
        for (auto const& one : subfiles_.subfiles) check_subfile(one);
        check_rest();
        return {};
    }

    /// Finds the ranges of the file that lie in what is missing. At most `most` of them are told.
    void find_unreadable(std::size_t most)
    {
        if (lost_from_.empty()) return;
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::size_t ranges = 0;
        std::uint64_t bytes = 0;
        auto const tell = [&] {
            if (end > begin && (++ranges <= most || most == 0))
                damage_.push_back(fmt::format("cannot be read: [{}, {}), {} B", begin, end, end - begin));
        };
        subfile::each_stretch(map_, [&](subfile::FilePart const& part) {
            auto const lost = lost_from_.find(part.subfile);
            if (lost == lost_from_.end() || part.at + part.length <= lost->second) return;
            auto const there = std::max<std::int64_t>(0, lost->second - part.at);
            bytes += static_cast<std::uint64_t>(part.length - there);
            if (part.offset + there != end) {
                tell();
                begin = part.offset + there;
            }
            end = part.offset + part.length;
        });
        tell();
        if (most > 0 && ranges > most) damage_.push_back(fmt::format("... {} more ranges", ranges - most));
        damage_.push_back(fmt::format("{} of {} B cannot be read", bytes, set_.size()));
    }

    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }
    [[nodiscard]] std::vector<std::string> const& notes() const { return notes_; }

private:
    [[nodiscard]] std::string path_of(std::string const& name) const { return set_.directory + "/" + name; }
    [[nodiscard]] bool find(std::string const& name, struct stat& file) const
    {
        return ::fstatat(set_.opened.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0;
    }

    /// A file that there is.
    void look_at(std::string const& name)
    {
        struct stat file = {};
        if (!find(name, file) || name == subfile::link_name) return;  // or it is gone meanwhile
        auto const subfile_number = numbered(name, subfile::subfile_name);
        auto const journal_number = numbered(name, subfile::journal_name);
        bool const draining = numbered(name, subfile::draining_name).has_value();
        bool const temporary =
            name == subfile::new_index_name || name == subfile::writer_name || journal_number || draining;
        if (!temporary && !subfile_number && name != subfile::index_name && name != subfile::rest_name) {
            damage_.push_back("unknown: " + path_of(name) + ": this is no part of a set: move it elsewhere");
            return;
        }
        if (!S_ISREG(file.st_mode)) {
            damage_.push_back(fmt::format("damaged: {} is {}, and no plain file", path_of(name),
                                          S_ISLNK(file.st_mode)   ? "a symbolic link"
                                          : S_ISDIR(file.st_mode) ? "a directory"
                                                                  : "something else"));
            return;
        }
        if (file.st_nlink > 1)
            damage_.push_back(fmt::format("damaged: {} has {} names, so whatever changes one of them changes the file",
                                          path_of(name), file.st_nlink));
        if (file.st_uid != owner_)
            damage_.push_back("damaged: " + path_of(name) + " does not belong to the owner of the file");
        if (draining)
            notes_.push_back("incomplete: " + path_of(name) +
                             ": a copy that `tapioca target drain` is making, or will "
                             "go on with");
        else if (temporary && set_.contents->state() == subfile::SetState::complete)
            notes_.push_back("left over: " + path_of(name) + ": it no longer counts");
        if (subfile_number && !map_.subfiles().contains(*subfile_number)) tell_extra(name, *subfile_number, file);
    }

    /// A subfile that no record speaks of.
    void tell_extra(std::string const& name, std::uint32_t number, struct stat const& file)
    {
        if (number < set_.contents->next_subfile())  // the index counts subfiles of jobs that were killed
            notes_.push_back(fmt::format("left over: {}: {} B, none of which is used", path_of(name), file.st_size));
        else
            damage_.push_back(fmt::format("unknown: {}: {} B, and the index knows no subfile of this number",
                                          path_of(name), file.st_size));
    }

    void check_subfile(SubfileWhere const& one)
    {
        auto const name = subfile::subfile_name(one.number);
        auto const path = one.where == SubfilePlace::here ? subfiles_.place + "/" + name : path_of(name);
        if (one.where == SubfilePlace::elsewhere) {
            notes_.push_back(fmt::format("not looked at: {}: {} B on {}", name, one.bytes,
                                         one.host.empty() ? "a host that is not known" : "the tier of " + one.host));
            return;
        }
        struct stat file = {};
        bool const odd = one.where == SubfilePlace::missing && find(name, file);  // it was told what is in the way
        if (one.where == SubfilePlace::missing && !odd)
            damage_.push_back(fmt::format("missing: {}: {} B", path, one.bytes));
        if (one.size >= one.bytes) return;
        if (one.where != SubfilePlace::missing || odd)
            damage_.push_back(fmt::format("too short: {}: {} of {} B", path, one.size, one.bytes));
        lost_from_[one.number] = static_cast<std::int64_t>(one.size);
    }

    void check_rest()
    {
        auto const& head = set_.contents->head();
        if (set_.contents->state() != subfile::SetState::complete || set_.size() >= head.size) return;
        struct stat file = {};
        bool const there = find(subfile::rest_name, file);
        damage_.push_back(fmt::format("{}: {}: the file had {} B and now has {}; bytes that are in no subfile {}",
                                      there ? "too short" : "missing", path_of(subfile::rest_name), head.size,
                                      set_.size(), there ? "are missing at its end" : "read as zeros"));
    }

    OpenSet const& set_;
    SetOnTier const& subfiles_;
    subfile::ExtentMap const& map_;
    uid_t owner_ = 0;
    std::vector<std::string> damage_;
    std::vector<std::string> notes_;
    std::map<std::uint32_t, std::int64_t> lost_from_;  ///< by subfile: what is there of it ends here
};

/// What the answer says of a set that is not in its directory alone.
std::string where_the_rest_is(SetOnTier const& set)
{
    std::string text;
    if (auto const here = set.count(SubfilePlace::here); here > 0)
        text += fmt::format("; {} of them on the tier of this node", here);
    if (auto const elsewhere = set.count(SubfilePlace::elsewhere); elsewhere > 0)
        text += fmt::format("; {} of them not looked at, on {}", elsewhere, core::printable(set.other_hosts()));
    return text;
}

/// If the stub cannot be read: the directory that it most likely names.
void tell_directory(std::string const& path)
{
    auto const directory = subfile::beside(path, subfile::directory_name(path));
    if (auto const opened = subfile::open_directory(directory))
        fmt::print("its directory is there, under the usual name: {}\n", core::printable(directory));
}

}  // namespace

int verify_set(Words const& words)
{
    std::string path;
    std::size_t ranges = 20;
    CLI::App app("Checks that a set of subfiles is complete. Status 1 if something is wrong or missing.");
    app.add_option("PATH", path, "the file")->required();
    app.add_option("--ranges", ranges, "at most so many ranges that cannot be read; 0 for all [20]");
    if (auto const status = parse_words(app, "subfile verify", words)) return *status;
    auto const set = open_set(path);
    if (!set && set.error().code == tapioca::Errc::setting) return fail_sub("subfile verify", set.error().text);
    if (!set) {
        fmt::print("damaged: {}\n", core::printable(set.error().text));
        if (!subfile::find_stub(path)) tell_directory(path);
        return 1;
    }
    auto const subfiles = look_for_subfiles(*set);
    if (!subfiles) return fail_sub("subfile verify", subfiles.error().text, 1);
    Verification verification(*set, *subfiles);
    if (auto const status = verification.look(); !status) return fail_sub("subfile verify", status.error().text, 1);
    verification.find_unreadable(ranges);
    for (auto const& line : verification.notes()) fmt::print("{}\n", core::printable(line));
    for (auto const& line : verification.damage()) fmt::print("{}\n", core::printable(line));
    core::Descriptor const stub(::open(set->path.c_str(), O_RDONLY | O_CLOEXEC));
    auto const own = subfile::check_own_directory(set->path, set->stub, stub.get());
    if (!own) fmt::print("copy: {}\n", own.error().text);
    auto const state = set->contents->state();
    auto const job = to_text(set->contents->writer());
    bool const known = set->contents->writer().generation > 0;
    if (state == subfile::SetState::interrupted && !known)
        fmt::print(
            "damaged: {}: neither an index nor a note of the job that wrote it: nothing says what its subfiles hold\n",
            core::printable(set->directory));
    if (state == subfile::SetState::interrupted && known)
        fmt::print("interrupted: {} has ended without closing the file: `tapioca subfile recover {}` completes it\n",
                   core::printable(job), core::shell_word(path));
    bool const sound = own && verification.damage().empty() && state != subfile::SetState::interrupted;
    auto const& map = set->contents->map();
    if (sound)
        fmt::print("{}: sound{}: {} B, {} chunks in {} subfiles{}\n", core::printable(path),
                   state == subfile::SetState::live ? " so far, and being written by " + core::printable(job) : "",
                   set->size(), map.chunks(), map.subfiles().size(), where_the_rest_is(*subfiles));
    return sound ? 0 : 1;
}

}  // namespace tools
