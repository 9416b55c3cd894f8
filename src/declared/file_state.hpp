// FileState: what stands behind File: an open file, staged or not, and the steps that were declared on it.
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

class FileState : public file::OpenFile {
public:
    FileState() = default;
    FileState(FileState const&) = delete;
    FileState& operator=(FileState const&) = delete;
    /// Complains of steps that were never run, if there was no close() to do it, and of a log that stays.
    ~FileState();

    report::Account account;
    std::unique_ptr<flush::Staging> staging;  ///< if writes go to a log first
    std::vector<StepState const*> steps;      ///< that will run on this file

    /// What File's functions of these names do. Collective, all of them.
    void flush();
    void sync();
    [[nodiscard]] std::uint64_t size();
    void close();
    /// Reads what earlier jobs have learnt, where a file is named. Collective.
    void read_learnt();

    /// What earlier jobs have learnt, where TAPIOCA_LEARN names a file; the same on all ranks.
    machine::Learnt learnt;
    /// A step of this file goes: what it has learnt stays. Local.
    void note_learnt(Choice const& choice);
    /// A step was dropped with variables that were supplied and never moved: close() says so. Local.
    void note_forgotten(core::Status const& what) { core::keep_first(forgotten_, what); }

private:
    [[nodiscard]] core::Status forgotten() const;
    void close_all();
    void tell_what_was_learnt();
    [[nodiscard]] std::optional<std::string> learnt_path() const;

    core::Status forgotten_;
    nlohmann::ordered_json predictions_ = nlohmann::ordered_json::array();  ///< of every step, for the report
    std::string learnt_lines_;                                              ///< to be added to the file, on rank 0
    std::string learnt_place_;                                              ///< that file, if it is one, on rank 0
};

struct OpenRequest {
    bool recovering = false;  ///< although there is a marker; and whatever the settings say, the file itself is written
    bool may_stage = true;    ///< else the file gets no log, whatever the settings say
    std::shared_ptr<engine::Session>* kept = nullptr;  ///< where the session is kept, if not with the communicator
    // Instead of communicator, options and hints: as in file::Opening.
    std::shared_ptr<engine::Session> session = nullptr;
    core::Result<settings::Settings> const* settings = nullptr;
};

/// What File::open() does. Collective.
std::shared_ptr<FileState> open_file(MPI_Comm comm, std::string const& path, Mode mode, Options const& options,
                                     MPI_Info info, OpenRequest const& opening = {});

/// Plans a step for what this rank moves. Collective.
std::unique_ptr<StepState> declare(std::shared_ptr<FileState> const& file, pattern::Variables const& variables);

}  // namespace tapioca::declared
