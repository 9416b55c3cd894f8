// The sweep over a program that uses only MPI, with the drop-in library preloaded: unstaged and staged.
#include <mpi.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "faults/on_nodes.hpp"
#include "faults/set_contents.hpp"
#include "faults/sweep.hpp"

namespace tapioca::faults {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<unsigned char>;

constexpr int block = 500;
constexpr int blocks = 8;  ///< of a rank in a call
constexpr int each = block * blocks;
constexpr int calls_made = 3;

unsigned char byte_at(int call, int rank, int i)
{
    auto const mixed =
        static_cast<unsigned>(i) * 131 + static_cast<unsigned>(call) * 77 + static_cast<unsigned>(rank) * 29;
    return static_cast<unsigned char>((mixed * 2654435761u >> 24) | 1);
}

Bytes data_of(int call, int rank)
{
    Bytes data(each);
    for (int i = 0; i < each; ++i) data[static_cast<std::size_t>(i)] = byte_at(call, rank, i);
    return data;
}

/// The class, which is what the standard promises; texts are each MPI's own.
Outcome outcome_of(int code)
{
    if (code == MPI_SUCCESS) return {};
    int kind = 0;
    MPI_Error_class(code, &kind);
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(kind, text, &length);
    for (auto& c : text)
        if (c == '\n') c = ' ';
    return {false, text};
}

bool staged()
{
    return std::getenv("TAPIOCA_STAGE") != nullptr;
}

bool on_tier()
{
    return std::getenv("TAPIOCA_TARGET") != nullptr;
}

bool subfiled()
{
    return std::getenv("TAPIOCA_SUBFILE") != nullptr || on_tier();
}

/// A collective access of `each` bytes: the blocking call, or the nonblocking one and the wait for it.
int access(MPI_File file, bool later, bool write, int call, Bytes& data, MPI_Status* status)
{
    auto const at = static_cast<MPI_Offset>(call) * each;
    if (!later)
        return write ? MPI_File_write_at_all(file, at, data.data(), each, MPI_BYTE, status)
                     : MPI_File_read_at_all(file, at, data.data(), each, MPI_BYTE, status);
    MPI_Request request = MPI_REQUEST_NULL;
    int const code = write ? MPI_File_iwrite_at_all(file, at, data.data(), each, MPI_BYTE, &request)
                           : MPI_File_iread_at_all(file, at, data.data(), each, MPI_BYTE, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
}

/// What a program does that writes blocks in turn through a view: which calls were acknowledged.
std::vector<bool> write_file(Trial& trial, std::string const& path, bool later)
{
    std::vector<bool> acknowledged(calls_made, false);
    MPI_File file = MPI_FILE_NULL;
    auto const call = [&](char const* what, auto const& body) {
        return trial.call(what, [&] { return outcome_of(body()); });
    };
    if (!call("open", [&] {
            return MPI_File_open(trial.comm(), path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        }))
        return acknowledged;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Datatype once = MPI_DATATYPE_NULL;
    MPI_Type_vector(blocks, block, block * trial.ranks(), MPI_BYTE, &once);
    MPI_Type_create_resized(once, 0, each * trial.ranks(), &type);
    MPI_Type_free(&once);
    MPI_Type_commit(&type);
    bool const seen = call("set_view", [&] {
        return MPI_File_set_view(file, trial.rank() * block, MPI_BYTE, type, "native", MPI_INFO_NULL);
    });
    if (seen) {
        for (int c = 0; c < calls_made; ++c) {
            auto data = data_of(c, trial.rank());
            auto const write = [&] { return outcome_of(access(file, later, true, c, data, MPI_STATUS_IGNORE)); };
            if (subfiled() && c == calls_made - 1) {  // every rank by itself
                acknowledged[static_cast<std::size_t>(c)] = trial.local_call("write_at", [&] {
                    return outcome_of(MPI_File_write_at(file, static_cast<MPI_Offset>(c) * each, data.data(), each,
                                                        MPI_BYTE, MPI_STATUS_IGNORE));
                });
                continue;
            }
            acknowledged[static_cast<std::size_t>(c)] =
                staged() ? trial.local_call("write_at_all", write) : trial.call("write_at_all", write);
        }
        (void)call("sync", [&] { return MPI_File_sync(file); });
        Bytes back(each);
        int received = 0;
        MPI_Status status;
        if (call("read_at_all", [&] { return access(file, later, false, 0, back, &status); })) {
            MPI_Get_count(&status, MPI_BYTE, &received);
            if (acknowledged[0])
                trial.expect(received == each && back == data_of(0, trial.rank()),
                             "what was read is not what was written");
        }
    }
    MPI_Type_free(&type);
    if (!call("close", [&] { return MPI_File_close(&file); }) && file != MPI_FILE_NULL) (void)MPI_File_close(&file);
    return acknowledged;
}

std::string check_file(std::string const& path, int ranks, std::vector<bool> const& acknowledged)
{
    std::string unreadable;
    auto const file = whole_file(path, unreadable);
    if (!unreadable.empty()) return unreadable;
    for (int call = 0; call < calls_made; ++call)
        for (int rank = 0; rank < ranks; ++rank)
            for (int i = 0; i < each; ++i) {
                auto const at =
                    static_cast<std::size_t>((call * blocks + i / block) * ranks * block + rank * block + i % block);
                auto const is = at < file.size() ? static_cast<unsigned char>(file[at]) : 0;
                bool const kept = acknowledged[static_cast<std::size_t>(call)];
                if (is == byte_at(call, rank, i) || (!kept && is == 0)) continue;
                return "byte " + std::to_string(at) + " of call " + std::to_string(call) +
                       (kept ? ", acknowledged, is lost" : " is neither old nor new");
            }
    return {};
}

/// In a process of its own, as a user does it, without what the launcher tells its ranks.
void recover(Trial& trial, std::string const& path)
{
    MPI_Barrier(trial.comm());
    if (trial.rank() == 0 && fs::exists(path + ".tapioca")) {
        auto const* const tool = std::getenv("RECOVER_TOOL");
        auto const command =
            "env -i PATH=\"$PATH\" LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\" OMPI_ALLOW_RUN_AS_ROOT=1 "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
            std::string(tool ? tool : "tapioca-recover") + " " + path + " >/dev/null 2>&1 </dev/null";
        trial.expect(std::system(command.c_str()) == 0, "what is in the log cannot be recovered");
    }
    MPI_Barrier(trial.comm());
}

void write_and_judge(Trial& trial, bool later)
{
    OnNodes const nodes(trial, on_tier());
    auto const acknowledged = write_file(trial, trial.path("file"), later);
    trial.disarm();
    auto const next = write_file(trial, trial.path("next"), later);
    auto const incomplete = trial.rank() == 0 ? complete_set(trial.path("file")) : std::string();
    trial.expect(incomplete.empty(), incomplete);
    recover(trial, trial.path("file"));
    for (auto const* const name : {"file", "next"}) nodes.drain(trial, trial.path(name));
    if (trial.rank() != 0) return;
    trial.expect(check_file(trial.path("next"), trial.ranks(), std::vector<bool>(calls_made, true)).empty(),
                 "the next file is wrong");
    auto const wrong = check_file(trial.path("file"), trial.ranks(), acknowledged);
    trial.expect(wrong.empty(), wrong);
}

}  // namespace
}  // namespace tapioca::faults

int main(int argc, char** argv)
{
    using namespace tapioca::faults;
    MPI_Init(&argc, &argv);
    std::string const name = std::string("mpiio") + (staged() ? "-staged" : "") +
                             (on_tier()    ? "-target"
                              : subfiled() ? "-subfile"
                                           : "") +
                             (std::getenv("TAPIOCA_RANKS_PER_NODE") ? "-nodes" : "");
    std::vector<Scenario> scenarios = {{name, "drop-in", [](Trial& trial) { write_and_judge(trial, false); }}};
    if (name == "mpiio")  // else they are logged, or the MPI library's
        scenarios.push_back({"mpiio-nonblocking", "drop-in", [](Trial& trial) { write_and_judge(trial, true); }});
    int const status = sweep(argc, argv, scenarios);
    MPI_Finalize();
    return status;
}
