// Runs the steps of a case on a file, with plain MPI calls, and records the observable results of each.
#pragma once

#include "fuzz_case.hpp"

namespace fuzz {

/// What the program is doing. After tell_where_it_ends(), this is printed on standard error if the program crashes, or
/// if an alarm finds it waiting.
extern char where_am_i[320];
void tell_where_it_ends();

/// Which of MPI's data accesses.
struct Access {
    bool write = false;
    Where where = Where::At;
    How how = How::Blocking;
};
/// The whole access, or its beginning where it is split or nonblocking.
int begin_access(MPI_File file, Access const& access, MPI_Offset at, void* buffer, int count, MPI_Datatype type,
                 MPI_Status* status, MPI_Request* request);
int end_split(MPI_File file, Access const& access, void* buffer, MPI_Status* status);
/// Of these ranks of the world, to be freed unless it is MPI_COMM_SELF. Collective over `members`.
MPI_Comm communicator_of(std::vector<int> const& members);

/// What one rank observes of one step on one file.
struct Observed {
    int error_class = MPI_SUCCESS;
    std::int64_t count = 0;
    std::int64_t elements = 0;  ///< in bytes
    std::int64_t position = 0;
    bool has_position = false;
    std::int64_t shared = -1;
    int handler_calls = 0;
    std::vector<std::int64_t> values;
    Bytes buffer;
};

/// One file under test, on one rank.
class Subject {
public:
    /// `hint`: the file is opened with tapioca=false.
    Subject(std::string path, bool hint, bool own_handler) : path_(std::move(path)), hint_(hint), handler_(own_handler)
    {
    }

    bool is_open() const { return file_ != MPI_FILE_NULL; }
    /// A step is started, then finished; in between, the same step may be started on other files. Collective over the
    /// communicator of the step's file.
    void start(Step const& step, int me);
    Observed finish(Step const& step, int me);
    /// Sets the individual pointer to its required position.
    void seek(std::int64_t position);
    void seek_shared(std::int64_t position);
    std::int64_t shared_position();
    /// Collective over the communicator of the file: closes it if it is open.
    void abandon();
    std::string const& path() const { return path_; }

private:
    void open(Step const& step);
    void access(Step const& step, Part const& part);
    bool packs(Step const& step) const;
    void move_directly(Step const& step, Part const& part);
    int begin(Step const& step, Part const& part, void* buffer, MPI_Datatype type);
    void query(Part const& part);
    void null_file(Step const& step);
    void note(int code);

    std::string path_;
    bool hint_;
    bool handler_;
    MPI_File file_ = MPI_FILE_NULL;
    int amode_ = 0;

    Observed seen_;
    Bytes buffer_;
    Bytes packed_;  ///< of an access with Alone::Packed
    void* address_ = nullptr;
    std::unique_ptr<Committed> held_;  ///< until the access is complete
    MPI_Status status_{};
    MPI_Request request_ = MPI_REQUEST_NULL;
};

/// Whether files are opened through the library under test. Local; creates and removes a file at `path`.
bool library_is_loaded(std::string const& path);

}  // namespace fuzz
