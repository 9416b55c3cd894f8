// Runs a program on this rank, and compares the results of its calls with the required ones.
#pragma once

#include <map>

#include "conforming_program.hpp"

namespace conforming {

class Runner {
public:
    /// `directory` is where the files are; `talk`: prints every operation on standard error.
    Runner(Program const& program, std::string directory, int me, bool talk, bool quiet)
        : program_(program), directory_(std::move(directory)), me_(me), talk_(talk), quiet_(quiet)
    {
    }

    /// Whether everything was right, on all ranks. Collective.
    bool run();

private:
    struct Running {
        Part const* part = nullptr;
        fuzz::Access access;
        Bytes buffer;
        std::unique_ptr<fuzz::Committed> type;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Status status{};
    };

    std::string path(int file) const { return directory_ + "/conforming." + std::to_string(file); }
    void prepare() const;
    void remove_files() const;
    void perform(Operation const& operation, std::size_t number);
    void open(Operation const& operation);
    void set_view(Operation const& operation, MPI_File file);
    void access(Operation const& operation, MPI_File file, Part const& part);
    void complete(std::size_t begun, MPI_File file);
    void compare(Running const& running, MPI_File file);
    void compare(Part const& part, Bytes const& found);
    void without_mpi(Operation const& operation, Part const& part);
    void look_at_files();
    void right(int code, char const* call);
    void expect(std::int64_t found, std::int64_t wanted, char const* what);
    void fail(std::string const& what);

    Program const& program_;
    std::string directory_;
    int me_;
    bool talk_;
    bool quiet_;
    int failures_ = 0;
    std::size_t number_ = 0;
    std::map<int, MPI_File> handles_;
    std::map<std::size_t, Running> running_;
};

}  // namespace conforming
