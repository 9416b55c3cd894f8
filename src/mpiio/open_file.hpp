// OpenFile: what this library knows of one of the program's open files. The handle itself stays the MPI library's.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include <tapioca/tapioca.hpp>

#include "mpiio/calls.hpp"
#include "mpiio/seat.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

enum class Direction { write, read };

/// One collective call of the program.
struct Request {
    Call call;
    Direction direction;
    std::optional<MPI_Offset> offset;  ///< in etypes; at the individual pointer if none is given
    void* buffer;                      ///< not written to by a write
    MPI_Count count;
    MPI_Datatype type;
};

/// What became of it: not served, and then to be passed on on all ranks; or bytes moved; or an MPI error class.
struct Outcome {
    bool served = false;
    int error = MPI_SUCCESS;
    std::int64_t bytes = 0;
};

class OpenFile {
public:
    /// After the MPI library has opened it. Of MPI_File_open's arguments.
    OpenFile(MPI_File handle, MPI_Comm comm, std::string const& name, int amode, MPI_Info info);
    OpenFile(OpenFile const&) = delete;
    OpenFile& operator=(OpenFile const&) = delete;
    ~OpenFile();

    /// Runs a collective call on the engine, if all ranks can. Collective.
    Outcome serve(Request const& request);
    /// What serve() does at the start of a split call; the outcome is kept for its end.
    std::optional<Outcome> split;

    /// A call that is never served.
    void passed(Call call) { calls_.passed(call); }
    /// The program has set a view. Local.
    void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    /// The program has set hints, which may differ from rank to rank. Local.
    void set_info(MPI_Info info);
    void set_atomicity(bool atomic) { atomic_ = atomic; }
    /// Adds what is in force here to what the MPI library says.
    void add_hints(MPI_Info info) const;
    /// Before the MPI library closes it. Collective. An MPI error class.
    int close();

private:
    struct Part;  ///< this rank's part in a request
    struct Decision;

    [[nodiscard]] std::string obstacle_of(Direction direction) const;
    [[nodiscard]] Part look_at(Request const& request) const;
    [[nodiscard]] Part look_closely(Request const& request) const;
    [[nodiscard]] bool agree_to_serve();
    [[nodiscard]] bool open_engine();
    int close_engine();
    void decode_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    [[nodiscard]] std::string describe_calls(std::vector<std::uint64_t> const& counts) const;
    [[nodiscard]] std::int64_t identity() const;
    Decision decide(Part const& part);
    std::size_t declare(Part const& part);
    Outcome run(Request const& request, Part& part, Decision const& decision);
    void give_up(std::string const& why);
    void account();

    MPI_File handle_;
    std::string path_;
    int amode_;
    MPI_Info hints_ = MPI_INFO_NULL;
    std::uint64_t device_ = 0, inode_ = 0;  ///< on rank 0: what the MPI library opened
    bool first_ = false;                    ///< this is rank 0
    bool atomic_ = false;
    std::string refusal_;  ///< why this rank wants everything passed on
    bool agreed_ = false;  ///< the ranks have told each other of that
    bool reopen_ = false;  ///< this rank has new hints
    std::string off_;      ///< why everything is passed on, for good; the same on all ranks

    std::string bad_view_;  ///< why collective calls are passed on with this view
    pattern::View view_;
    std::int64_t etype_bytes_ = 1;

    std::shared_ptr<Seat> seat_;
    std::shared_ptr<Bench> bench_;
    std::optional<File> file_;  ///< from the first collective access on
    bool identified_ = false;   ///< and all ranks have opened the same file
    std::string conditions_;    ///< what a plan depends on besides the data: file system and settings
    Calls calls_;
};

/// The program's open files, found by handle.
std::shared_ptr<OpenFile> find(MPI_File handle);
void enter(MPI_File handle, std::shared_ptr<OpenFile> file);
std::shared_ptr<OpenFile> remove(MPI_File handle);

/// Whether the environment, which is the same for all ranks, turns everything off; a bad setting does, and is told
/// once.
bool is_off();
/// Tells, on rank 0 of the job, the first thing that is wrong with the settings, once.
void warn(std::string const& text);

/// The error class for an Error.
int class_of(Error const& error);

}  // namespace tapioca::mpiio
