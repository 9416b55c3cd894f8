// Join: makes one plain file of a set of subfiles. Several processes may do this together, each with a Join of its own:
// all open() it, one of them calls prepare(), then the others attach(), all copy their chunks and sync(), and the first
// one finishes. All calls are local, and who makes them one after the other sees to the order. The set is not touched
// before the result is complete and durable; a join that was interrupted goes on where it was.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "subfile/chunk_marks.hpp"
#include "subfile/copy_stretch.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::subfile {

/// The file that `path` leads to if it is a link: its subfiles are beside that, and a join or split replaces that.
std::string resolved(std::string const& path);

class Join {
public:
    static constexpr std::int64_t chunk_bytes = std::int64_t{64} << 20;

    /// `output`: the name of the plain file; empty: it takes the stub's place. Fails if the set cannot be used.
    static core::Result<std::unique_ptr<Join>> open(std::string const& path, std::string const& output);
    ~Join();
    Join(Join const&) = delete;
    Join& operator=(Join const&) = delete;

    /// On one process. Excludes other joins and, if the set is to be replaced, jobs that add chunks. `kernels`: a
    /// number that tells by which boots of which machines the data is written, because after another one the marks of
    /// chunks that were copied do not count; 0: it is not known.
    core::Status prepare(std::uint64_t kernels);
    /// On the others, after that.
    core::Status attach();

    [[nodiscard]] std::uint64_t chunks() const { return chunks_; }
    [[nodiscard]] std::int64_t size() const { return size_; }
    [[nodiscard]] std::int64_t bytes_of(std::uint64_t chunk) const;
    [[nodiscard]] bool is_done(std::uint64_t chunk) const { return marks_.has(chunk); }
    /// How many chunks were there when this process looked.
    [[nodiscard]] std::uint64_t done() const { return marks_.count(); }
    /// The file that is made of the chunks before it gets its name.
    [[nodiscard]] std::string temporary() const { return result_ + ".joining"; }

    /// Copies a chunk, then marks it as done.
    core::Status copy(std::uint64_t chunk);
    /// What this process has copied survives a crash of the machine. If this fails, nothing that was copied counts.
    core::Status sync();
    /// On the first process, after all: gives the file its name, durably; then, if it has replaced the stub, removes
    /// the subfiles unless `keep`.
    core::Status finish(bool keep);

    /// After a crash between the last two steps of finish(): `path` is the plain file. Returns whether there were
    /// subfiles to remove.
    static core::Result<bool> finish_removal(std::string const& path);

private:
    Join(std::string path, std::string output, Stub stub);
    [[nodiscard]] std::string marks_path() const { return temporary() + ".done"; }
    [[nodiscard]] bool replaces() const { return result_ == path_; }
    core::Status open_source();
    [[nodiscard]] core::Status check_output() const;
    [[nodiscard]] core::Status check_drained() const;
    [[nodiscard]] core::Status check_files() const;
    core::Status lock_set();
    core::Status give_name();
    [[nodiscard]] std::uint64_t facts_of_set() const;

    std::string path_;    ///< of the stub
    std::string result_;  ///< what the plain file will be called
    Stub stub_;
    std::uint32_t owner_ = 0;  ///< of the stub
    std::string directory_path_;
    core::Descriptor directory_;
    SetContents contents_;
    std::unique_ptr<SetTarget> source_;
    core::Descriptor rest_;
    StretchCopier copier_;
    std::int64_t size_ = 0;
    std::uint64_t chunks_ = 0;
    core::Descriptor to_;  ///< locked on the first process
    ChunkMarks marks_;
    std::uint64_t facts_ = 0;  ///< of the set when the join began
    core::Descriptor lock_;    ///< of the set, on the first process
};

}  // namespace tapioca::subfile
