// FileState: the state behind File: an open file, staged or not, and the steps that were declared on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "file/open_file.hpp"
#include "flush/staging.hpp"
#include "machine/learnt.hpp"
#include "report/account.hpp"

namespace tapioca::declared {

class Choice;
class StepState;
class Subfiles;

class FileState : public file::OpenFile {
public:
    FileState() = default;
    FileState(FileState const&) = delete;
    FileState& operator=(FileState const&) = delete;
    /// Without close(), prints a line about steps that were never run. Also prints one about a log that stays, or a set
    /// of subfiles that is not complete.
    ~FileState();
    /// What to say about the log or the set of subfiles if the file is never closed; empty if that loses nothing.
    /// Local.
    [[nodiscard]] std::string never_closed() const;

    report::Account account;
    std::unique_ptr<flush::Staging> staging;  ///< set if writes go to a log first
    std::unique_ptr<Subfiles> subfiles;       ///< set if writes add chunks to a set of subfiles
    std::vector<StepState const*> steps;      ///< the steps that will run on this file

    /// These do what the functions of File with the same names do. All of them are collective.
    void flush();
    void drain();
    void sync();
    [[nodiscard]] std::uint64_t size();
    /// Sets the size of a set of subfiles; at least, or exactly.
    void resize(std::int64_t size, bool exactly);
    void close();
    /// Reads what earlier jobs have learnt, if TAPIOCA_LEARN names a file. Collective.
    void read_learnt();

    /// What earlier jobs have learnt, if TAPIOCA_LEARN names a file; the same on all ranks.
    machine::Learnt learnt;
    /// Keeps what a step of this file has learnt, before the step is destroyed. Local.
    void note_learnt(Choice const& choice);
    /// A step was destroyed with variables that were supplied and never moved; close() will report it. Local.
    void note_forgotten(core::Status const& what) { core::keep_first(forgotten_, what); }

private:
    [[nodiscard]] core::Status forgotten() const;
    void close_all();
    void tell_what_was_learnt();
    [[nodiscard]] std::optional<std::string> learnt_path() const;

    core::Status forgotten_;
    nlohmann::ordered_json predictions_ = nlohmann::ordered_json::array();  ///< of every step, for the report
    std::string learnt_lines_;  ///< on rank 0: lines to be added to the file of TAPIOCA_LEARN
    std::string learnt_place_;  ///< on rank 0: the path of that file, if it can be used
};

struct OpenRequest {
    /// Opens the file although there is a marker, and writes to the file itself, whatever the settings say.
    bool recovering = false;
    bool within_set = false;                           ///< the file is a subfile of a set
    bool may_become_set = false;                       ///< of an empty file, too, although it is not created
    bool has_independent_accesses = false;             ///< ranks will read and write by themselves
    bool may_stage = true;                             ///< if false, the file gets no log, whatever the settings say
    std::shared_ptr<engine::Session>* kept = nullptr;  ///< where the session is kept, if not with the communicator
    // These two replace communicator, options and hints, as in file::Opening.
    std::shared_ptr<engine::Session> session = nullptr;
    core::Result<settings::Settings> const* settings = nullptr;
};

/// Does the work of File::open(). Collective.
std::shared_ptr<FileState> open_file(MPI_Comm comm, std::string const& path, Mode mode, Options const& options,
                                     MPI_Info info, OpenRequest const& opening = {});

/// Plans a step for what this rank moves. Collective.
std::unique_ptr<StepState> declare(std::shared_ptr<FileState> const& file, pattern::Variables const& variables);

}  // namespace tapioca::declared
