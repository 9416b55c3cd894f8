// What programs under the drop-in library can do with files that consist of subfiles: subfiled SCENARIO... runs them in
// one job, with TAPIOCA_SUBFILE.
#include <mpi.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "mpiio/program.hpp"

namespace {

namespace fs = std::filesystem;

constexpr int new_file = MPI_MODE_RDWR | MPI_MODE_CREATE;
constexpr int each = 1000;  ///< ints of each rank
constexpr MPI_Offset whole = each * sizeof(int);

MPI_File open_file(std::string const& name, int mode = new_file, MPI_Info info = MPI_INFO_NULL)
{
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, info, &file), "open " + name);
    return file;
}

void close_file(MPI_File& file)
{
    right(MPI_File_close(&file), "close");
    MPI_Barrier(MPI_COMM_WORLD);
}

std::vector<int> mine(int first = 0)
{
    std::vector<int> data(each);
    for (int i = 0; i < each; ++i) data[static_cast<std::size_t>(i)] = first + rank * each + i;
    return data;
}

void write_mine(MPI_File file, MPI_Offset at = 0, int first = 0)
{
    auto const data = mine(first);
    right(MPI_File_write_at_all(file, at + rank * whole, data.data(), each, MPI_INT, MPI_STATUS_IGNORE),
          "write_at_all");
}

std::vector<int> read_ints(MPI_File file, MPI_Offset at, int count)
{
    std::vector<int> data(static_cast<std::size_t>(count), -1);
    MPI_Status status;
    int got = 0;
    right(MPI_File_read_at(file, at, data.data(), count, MPI_INT, &status), "read_at");
    MPI_Get_count(&status, MPI_INT, &got);
    data.resize(static_cast<std::size_t>(got));
    return data;
}

void require_counting(MPI_File file, int count, std::string const& what)
{
    auto const data = read_ints(file, 0, count + 1);
    require(static_cast<int>(data.size()) == count, what + ": " + std::to_string(data.size()) + " numbers");
    for (int i = 0; i < count; ++i)
        require(data[static_cast<std::size_t>(i)] == i,
                what + ": number " + std::to_string(i) + " is " + std::to_string(data[static_cast<std::size_t>(i)]));
}

bool is_set(std::string const& name)
{
    std::ifstream in(name, std::ios::binary);
    std::string text(64, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text.find("TAPIOCA subfile set") != std::string::npos && fs::exists(name + ".subfiles");
}

MPI_Offset size_of(MPI_File file)
{
    MPI_Offset size = -1;
    right(MPI_File_get_size(file, &size), "get_size");
    return size;
}

void require_class(int code, int wanted, std::string const& what)
{
    require(class_of(code) == wanted, what + ": class " + std::to_string(class_of(code)));
}

void sizes()
{
    auto file = open_file("sizes");
    write_mine(file);
    right(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    require(size_of(file) == ranks * whole, "the size");
    right(MPI_File_seek(file, -8, MPI_SEEK_END), "seek");
    MPI_Offset position = 0;
    MPI_File_get_position(file, &position);
    require(position == ranks * whole - 8, "the position from the end");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_preallocate(file, ranks * whole + 100), "preallocate");
    require(size_of(file) == ranks * whole + 100, "the size after preallocate");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_preallocate(file, 10), "preallocate less");
    require(size_of(file) == ranks * whole + 100, "preallocate does not cut");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_set_size(file, 2 * sizeof(int)), "set_size");
    require(size_of(file) == 2 * sizeof(int), "the size after set_size");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_set_size(file, 4 * sizeof(int)), "set_size");
    require(read_ints(file, 0, 100) == (std::vector<int>{0, 1, 0, 0}), "zeros behind what was cut off");
    MPI_Barrier(MPI_COMM_WORLD);
    // From the end of a view: every second int is seen.
    MPI_Datatype spaced = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    right(MPI_File_set_view(file, 0, MPI_INT, spaced, "native", MPI_INFO_NULL), "set_view");
    right(MPI_File_seek(file, 0, MPI_SEEK_END), "seek in a view");
    MPI_File_get_position(file, &position);
    require(position == 2, "the end in a view");
    MPI_Type_free(&spaced);
    close_file(file);
    require(is_set("sizes"), "a set");
}

void appended()
{
    auto file = open_file("appended");
    write_mine(file);
    close_file(file);
    file = open_file("appended", MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_Offset position = 0;
    MPI_File_get_position(file, &position);
    require(position == ranks * whole, "the position");
    auto const data = mine(ranks * each);
    right(MPI_File_write_ordered(file, data.data(), each, MPI_INT, MPI_STATUS_IGNORE), "write_ordered");
    close_file(file);
    file = open_file("appended", MPI_MODE_RDONLY);
    require_counting(file, 2 * ranks * each, "appended");
    close_file(file);
}

void deleted()
{
    auto file = open_file("deleted");
    write_mine(file);
    if (rank == 0)
        require_class(MPI_File_delete("deleted", MPI_INFO_NULL), MPI_ERR_FILE_IN_USE, "deleting an open set");
    close_file(file);
    if (rank == 0) {
        right(MPI_File_delete("deleted", MPI_INFO_NULL), "delete");
        require(!fs::exists("deleted") && !fs::exists("deleted.subfiles"), "nothing is left");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_file("deleted", new_file | MPI_MODE_DELETE_ON_CLOSE);
    write_mine(file);
    close_file(file);
    require(!fs::exists("deleted") && !fs::exists("deleted.subfiles"), "nothing is left after close");
}

/// What cannot be done is an error of a class that says so, and changes nothing.
void refused()
{
    auto file = open_file("refused");
    write_mine(file);
    int number = 7;
    require_class(MPI_File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION,
                  "write_shared");
    require_class(MPI_File_set_atomicity(file, 1), MPI_ERR_UNSUPPORTED_OPERATION, "atomicity");
    right(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL), "set_view");
    require_class(MPI_File_write_at_all(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_DATAREP,
                  "external32");
    right(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    require_class(MPI_File_write_at(file, 0, &number, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT, "a count");
    close_file(file);
    file = open_file("refused", MPI_MODE_RDONLY);
    require_class(MPI_File_write_at_all(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY,
                  "writing to a file opened for reading");
    require_counting(file, ranks * each, "refused");
    close_file(file);
    auto const code =
        MPI_File_open(MPI_COMM_WORLD, "refused", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file);
    require_class(code, MPI_ERR_UNSUPPORTED_OPERATION, "sequential");
}

/// Independent accesses of all kinds, between collective ones, and by single ranks that open the file by themselves.
void independent()
{
    auto file = open_file("independent");
    write_mine(file);
    MPI_Barrier(MPI_COMM_WORLD);
    int const number = 1'000'000 + rank;
    MPI_Request request = MPI_REQUEST_NULL;
    right(MPI_File_write_at(file, rank * whole, &number, 1, MPI_INT, MPI_STATUS_IGNORE), "write_at");
    right(MPI_File_iwrite_at(file, (ranks * each + rank) * MPI_Offset{sizeof(int)}, &number, 1, MPI_INT, &request),
          "iwrite_at");
    right(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    right(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    require(size_of(file) == ranks * whole + ranks * MPI_Offset{sizeof(int)}, "the size");
    auto const next = (rank + 1) % ranks;
    require(read_ints(file, next * whole, 2) == (std::vector<int>{1'000'000 + next, next * each + 1}), "another's");
    require(read_ints(file, (ranks * each + next) * MPI_Offset{sizeof(int)}, 1) == std::vector<int>{1'000'000 + next},
            "behind");
    std::vector<int> data(2);
    right(MPI_File_iread_at_all(file, next * whole, data.data(), 2, MPI_INT, &request), "iread_at_all");
    right(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    require(data[0] == 1'000'000 + next, "a nonblocking collective read");
    close_file(file);
    MPI_File alone = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, "independent", MPI_MODE_RDONLY, MPI_INFO_NULL, &alone), "open alone");
    require(read_ints(alone, next * whole, 1) == std::vector<int>{1'000'000 + next}, "alone");
    int shared = 0;
    right(MPI_File_read_shared(alone, &shared, 1, MPI_INT, MPI_STATUS_IGNORE), "read_shared alone");
    right(MPI_File_read_shared(alone, &shared, 1, MPI_INT, MPI_STATUS_IGNORE), "read_shared alone");
    require(shared == 1, "the second number at the shared pointer");
    right(MPI_File_close(&alone), "close");
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Which files become sets.
void chosen()
{
    auto const name = "alone." + std::to_string(rank);
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), new_file, MPI_INFO_NULL, &file), "open alone");
    right(MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), "write");
    right(MPI_File_close(&file), "close");
    require(!is_set(name) && fs::file_size(name) == sizeof(int), "a file of one rank stays plain");

    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca", "false");
    file = open_file("left", new_file, info);
    write_mine(file);
    close_file(file);
    require(!is_set("left"), "a file that is to be left alone");
    file = open_file("set");
    write_mine(file);
    close_file(file);
    file = open_file("set", MPI_MODE_RDONLY, info);
    require_counting(file, ranks * each, "a set is served whatever the hint says");
    close_file(file);
    MPI_Info_free(&info);

    if (rank == 0) std::ofstream("old") << "not empty";
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_file("old");
    write_mine(file);
    close_file(file);
    require(!is_set("old") && fs::file_size("old") == static_cast<std::uintmax_t>(ranks * whole), "an old file");

    // A rank has it open already, so that it must stay one file.
    MPI_File first = MPI_FILE_NULL;
    if (rank == 1) right(MPI_File_open(MPI_COMM_SELF, "used", new_file, MPI_INFO_NULL, &first), "open alone");
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_file("used");
    write_mine(file);
    close_file(file);
    if (rank == 1) right(MPI_File_close(&first), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    require(!is_set("used"), "a file that is in use");
}

/// A set that cannot be used is an error with one line, and is not touched.
void unusable()
{
    auto file = open_file("unusable");
    write_mine(file);
    close_file(file);
    if (rank == 0) fs::rename("unusable.subfiles", "elsewhere");
    MPI_Barrier(MPI_COMM_WORLD);
    auto code = MPI_File_open(MPI_COMM_WORLD, "unusable", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    require_class(code, MPI_ERR_NO_SUCH_FILE, "without its directory");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        fs::rename("elsewhere", "unusable.subfiles");
        fs::remove("unusable.subfiles/subfile.1");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_file("unusable", MPI_MODE_RDONLY);
    require(read_ints(file, 0, 3) == (std::vector<int>{0, 1, 2}), "what the other subfile has");
    int number = 0;
    code = MPI_File_read_at(file, ranks * whole - 4, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
    require_class(code, MPI_ERR_NO_SUCH_FILE, "what the missing subfile had");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) {  // one line, whatever the program does
        std::vector<int> data(each);
        auto const other = (rank + 1) % ranks;
        code = MPI_File_read_at_all(file, other * whole, data.data(), each, MPI_INT, MPI_STATUS_IGNORE);
        require_class(code, MPI_ERR_NO_SUCH_FILE, "the same, collectively");
    }
    close_file(file);
}

/// A program that is not served must not take a stub for the file.
void turned_off()
{
    auto file = open_file("turned_off");
    write_mine(file);
    close_file(file);
    for (auto const& [name, value] : {std::pair("TAPIOCA_OFF", "1"), std::pair("TAPIOCA_BUFFERSIZE", "1 mile")}) {
        auto const before = std::getenv(name) ? std::string(std::getenv(name)) : std::string();
        setenv(name, value, 1);
        auto const code = MPI_File_open(MPI_COMM_WORLD, "turned_off", new_file, MPI_INFO_NULL, &file);
        require_class(code, MPI_ERR_UNSUPPORTED_OPERATION, std::string("opening with ") + name + "=" + value);
        before.empty() ? unsetenv(name) : setenv(name, before.c_str(), 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    file = open_file("turned_off", MPI_MODE_RDONLY);
    require_counting(file, ranks * each, "turned on again");
    close_file(file);
    setenv("TAPIOCA_OFF", "1", 1);
    if (rank == 0) {
        right(MPI_File_delete("turned_off", MPI_INFO_NULL), "delete");
        require(!fs::exists("turned_off.subfiles"), "its subfiles are removed, too");
    }
    unsetenv("TAPIOCA_OFF");
    MPI_Barrier(MPI_COMM_WORLD);
}

/// What was on a tier is gone: the line says so, and not that it is elsewhere.
void cleared()
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca_target", ("ssd:" + fs::absolute("tier").string()).c_str());
    MPI_Info_set(info, "tapioca_target_through", "0");
    if (rank == 0) fs::create_directory("tier");
    MPI_Barrier(MPI_COMM_WORLD);
    auto file = open_file("cleared", new_file, info);
    write_mine(file);
    close_file(file);
    MPI_Info_free(&info);
    if (rank == 0) {
        require(!fs::is_empty("tier"), "data on the tier");
        for (auto const& entry : fs::directory_iterator("tier")) fs::remove_all(entry);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_file("cleared", MPI_MODE_RDONLY);
    std::vector<int> data(each);
    auto const at = (rank + 1) % ranks * whole;
    require_class(MPI_File_read_at_all(file, at, data.data(), each, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SUCH_FILE,
                  "a collective read");
    require_class(MPI_File_read_at(file, at, data.data(), each, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SUCH_FILE,
                  "an independent read");
    close_file(file);
}

/// Writes that fail say why. There is no room for more than the first one.
void full()
{
    if (std::getenv("TAPIOCA_STAGE") != nullptr) return;
    auto file = open_file("full");
    write_mine(file);
    rlimit before = {};
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit const little = {10'000, before.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    auto const data = mine();
    for (int i = 0; i < 3; ++i)
        require_class(
            MPI_File_write_at_all(file, (ranks + rank) * whole, data.data(), each, MPI_INT, MPI_STATUS_IGNORE),
            MPI_ERR_NO_SPACE, "a collective write");
    require_class(MPI_File_write_at(file, 100 * whole, data.data(), each, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE,
                  "an independent write");
    MPI_Barrier(MPI_COMM_WORLD);
    setrlimit(RLIMIT_FSIZE, &before);
    close_file(file);
    file = open_file("full", MPI_MODE_RDONLY);
    auto const back = read_ints(file, rank * whole, each);
    require(back == mine(), "what was written before");
    close_file(file);
}

/// A set that cannot be completed when it is closed.
void moved()
{
    auto file = open_file("moved");
    write_mine(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) fs::rename("moved.subfiles", "moved.away");
    MPI_Barrier(MPI_COMM_WORLD);
    require_class(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE, "close");
}

/// A set that was never closed is not complete, which rank 0 says when MPI ends. A second handle does not add to it.
void unclosed()
{
    auto file = open_file("unclosed");
    write_mine(file);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)open_file("unclosed", MPI_MODE_RDONLY);
    auto complete = open_file("complete");
    write_mine(complete);
    close_file(complete);
    // Nothing is written to it again. A log would stay, though.
    (void)open_file("complete", std::getenv("TAPIOCA_STAGE") == nullptr ? MPI_MODE_RDWR : MPI_MODE_RDONLY);
}

/// Two handles of one set at the same time.
void two_handles()
{
    auto file = open_file("two");
    auto second = open_file("two", MPI_MODE_RDWR);
    write_mine(file);
    right(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_sync(second), "sync");
    require_counting(second, ranks * each, "the second handle");
    write_mine(second, ranks * whole, ranks * each);
    right(MPI_File_sync(second), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_sync(file), "sync");
    require_counting(file, 2 * ranks * each, "the first handle");
    MPI_Barrier(MPI_COMM_WORLD);
    // With a log, what the first handle writes while there is a second one goes to the file at once, not into chunks.
    if (std::getenv("TAPIOCA_STAGE") == nullptr)
        require_class(MPI_File_set_size(second, 10), MPI_ERR_UNSUPPORTED_OPERATION,
                      "cutting through the second handle");
    close_file(second);
    close_file(file);
    file = open_file("two", MPI_MODE_RDONLY);
    require_counting(file, 2 * ranks * each, "afterwards");
    close_file(file);
}

std::map<std::string, void (*)()> const scenarios = {
    {"sizes", sizes},       {"appended", appended},       {"deleted", deleted},
    {"refused", refused},   {"independent", independent}, {"chosen", chosen},
    {"unusable", unusable}, {"turned_off", turned_off},   {"two_handles", two_handles},
    {"unclosed", unclosed}, {"cleared", cleared},         {"full", full},
    {"moved", moved},
};

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (auto const& [name, run] : scenarios) {
        if (argc > 1 && name != argv[1]) continue;
        run();
        MPI_Barrier(MPI_COMM_WORLD);
        say(name + ": ok");
    }
    MPI_Finalize();
    return 0;
}
