// Programs that use MPI-IO in typical ways, rightly or wrongly: behaviour SCENARIO... runs them in one job.
//
// Each scenario checks what MPI promises, and prints from rank 0 what it saw; the output must be the same with and
// without the drop-in library.
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiio/program.hpp"

namespace {

constexpr int each = 3000;
constexpr int read_and_create = MPI_MODE_RDWR | MPI_MODE_CREATE;

bool finalized_at_exit = false;

void require_same_class(std::string const& what, int code)
{
    int const mine = class_of(code);
    int lowest = 0;
    int highest = 0;
    MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    require(lowest == highest, what + ": the same error class on all ranks");
}

/// By its name, as its number differs between MPIs.
void say_class(std::string const& what, int code)
{
    require_same_class(what, code);
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(class_of(code), text, &length);
    say(what + ": " + text);
}

/// Whether to insist on what not every MPI library does by itself, but the drop-in library does.
bool strict()
{
    return std::getenv("BEHAVIOUR_STRICT") != nullptr;
}

std::vector<int> numbers(int first, int count = each)
{
    std::vector<int> result(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = first + i * 7;
    return result;
}

std::vector<int> mine(int salt = 0)
{
    return numbers(rank * 1'000'000 + salt);
}

MPI_File open_file(std::string const& name, int mode = read_and_create, MPI_Comm comm = MPI_COMM_WORLD)
{
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(comm, name.c_str(), mode, MPI_INFO_NULL, &file), "open " + name);
    return file;
}

/// Blocks of `block` integers of this rank between those of the others.
MPI_Datatype interleaved(int block, int of = ranks, int me = rank)
{
    MPI_Datatype vector = MPI_DATATYPE_NULL;
    MPI_Datatype moved = MPI_DATATYPE_NULL;
    MPI_Datatype result = MPI_DATATYPE_NULL;
    MPI_Type_vector(each / block, block, block * of, MPI_INT, &vector);
    int const one = 1;
    MPI_Aint const place = static_cast<MPI_Aint>(me) * block * static_cast<MPI_Aint>(sizeof(int));
    MPI_Type_create_hindexed(1, &one, &place, vector, &moved);
    MPI_Type_create_resized(moved, 0, static_cast<MPI_Aint>(each) * of * static_cast<MPI_Aint>(sizeof(int)), &result);
    MPI_Type_commit(&result);
    MPI_Type_free(&vector);
    MPI_Type_free(&moved);
    return result;
}

void view(MPI_File file, MPI_Datatype filetype)
{
    char native[] = "native";
    right(MPI_File_set_view(file, 0, MPI_INT, filetype, native, MPI_INFO_NULL), "set_view");
}

void view_interleaved(MPI_File file, int block = 10)
{
    auto type = interleaved(block);
    view(file, type);
    MPI_Type_free(&type);
}

int count_of(MPI_Status const& status)
{
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    return count;
}

void write_all(MPI_File file, std::vector<int> const& data)
{
    MPI_Status status;
    right(MPI_File_write_all(file, data.data(), static_cast<int>(data.size()), MPI_INT, &status), "write_all");
    require(count_of(status) == static_cast<int>(data.size()), "the count of write_all");
}

void require_read(MPI_File file, std::vector<int> const& wanted)
{
    std::vector<int> back(wanted.size(), -1);
    MPI_Status status;
    right(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
    right(MPI_File_read_all(file, back.data(), static_cast<int>(back.size()), MPI_INT, &status), "read_all");
    require(back == wanted, "what read_all read");
    require(count_of(status) == static_cast<int>(wanted.size()), "the count of read_all");
}

void close_file(MPI_File& file)
{
    right(MPI_File_close(&file), "close");
    require(file == MPI_FILE_NULL, "the handle after close");
}

/// From the start of the view.
void write_and_read(MPI_File file, int salt = 0)
{
    right(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
    write_all(file, mine(salt));
    require_read(file, mine(salt));
}

bool exists(std::string const& name)
{
    return ::access(name.c_str(), F_OK) == 0;
}

/// Rank 0 does it, between barriers.
void once(std::function<void()> const& what)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) what();
    MPI_Barrier(MPI_COMM_WORLD);
}

/// What interleaved blocks of all ranks must have made of the file.
void require_interleaved(std::string const& name, int salt = 0, int block = 10)
{
    once([&] {
        std::ifstream in(name, std::ios::binary);
        std::string const text((std::istreambuf_iterator<char>(in)), {});
        require(text.size() == static_cast<std::size_t>(each) * static_cast<std::size_t>(ranks) * sizeof(int),
                "the size of " + name);
        for (int i = 0; i < each * ranks; ++i) {
            int const owner = i / block % ranks;
            int const index = i / block / ranks * block + i % block;
            int found = 0;
            std::memcpy(&found, text.data() + static_cast<std::size_t>(i) * sizeof found, sizeof found);
            require(found == owner * 1'000'000 + salt + index * 7, "the contents of " + name);
        }
    });
}

void freed_handles()
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "8192");
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(comm, "freed", read_and_create, info, &file), "open");
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    view_interleaved(file);
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    auto const data = mine();
    right(MPI_File_write_all(file, data.data(), each / 2, pair, MPI_STATUS_IGNORE), "write_all");
    MPI_Type_free(&pair);
    require_read(file, data);
    MPI_Datatype etype = MPI_DATATYPE_NULL;
    MPI_Datatype filetype = MPI_DATATYPE_NULL;
    MPI_Offset displacement = -1;
    char representation[MPI_MAX_DATAREP_STRING] = "";
    right(MPI_File_get_view(file, &displacement, &etype, &filetype, representation), "get_view");
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(filetype, &lower, &extent);
    require(extent == static_cast<MPI_Aint>(each) * ranks * static_cast<MPI_Aint>(sizeof(int)), "the view's extent");
    MPI_Type_free(&filetype);
    close_file(file);
    require_interleaved("freed");
}

void relative_path()
{
    char before[4096];
    require(::getcwd(before, sizeof before) != nullptr, "getcwd");
    auto file = open_file("relative");
    require(::chdir("/") == 0, "chdir");
    view_interleaved(file);
    write_and_read(file);
    close_file(file);
    require(::chdir(before) == 0, "chdir back");
    require_interleaved("relative");
    require(!exists("/relative"), "a file in the wrong place");
}

void unlinked()
{
    auto file = open_file("unlinked");
    view_interleaved(file);
    write_and_read(file);
    once([] { require(::unlink("unlinked") == 0, "unlink"); });
    write_and_read(file, 5);
    close_file(file);
    once([] { require(!exists("unlinked"), "an unlinked file came back"); });
}

/// The first collective access comes only when the name is gone, or is another file's.
void unlinked_before_use()
{
    auto file = open_file("early");
    once([] {
        require(::unlink("early") == 0, "unlink");
        std::ofstream("early") << "another";
    });
    view_interleaved(file);
    write_and_read(file);
    close_file(file);
    once([] {
        std::ifstream in("early");
        std::string const text((std::istreambuf_iterator<char>(in)), {});
        require(text == "another", "the file that took the name was written to");
    });
}

void renamed()
{
    auto file = open_file("old name");
    view_interleaved(file);
    write_and_read(file);
    once([] { require(::rename("old name", "new name") == 0, "rename"); });
    write_and_read(file, 9);
    close_file(file);
    require_interleaved("new name", 9);
    once([] { require(!exists("old name"), "the old name came back"); });
}

/// A large message is under way while its sender is in a collective call, and is received by a rank that enters it
/// later.
void pending_message()
{
    auto file = open_file("pending");
    view_interleaved(file);
    constexpr int megabytes = 4;
    std::vector<char> message(megabytes << 20, static_cast<char>('a' + rank));
    std::vector<char> received(message.size());
    auto const next = (rank + 1) % ranks;
    auto const previous = (rank + ranks - 1) % ranks;
    auto const wanted = std::vector<char>(message.size(), static_cast<char>('a' + previous));
    for (int round = 0; round < 3; ++round) {
        bool const late = rank % 2 == round % 2;
        MPI_Request sending = MPI_REQUEST_NULL;
        MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, next, round, MPI_COMM_WORLD, &sending);
        auto const receive = [&] {
            MPI_Recv(received.data(), static_cast<int>(received.size()), MPI_CHAR, previous, round, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            require(received == wanted, "the message");
        };
        right(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
        if (late) receive();  // its sender is in write_all, or on its way there
        write_all(file, mine(round));
        if (!late) receive();
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
        require_read(file, mine(round));
    }
    close_file(file);
    require_interleaved("pending", 2);
}

void modes()
{
    auto file = open_file("deleted", read_and_create | MPI_MODE_DELETE_ON_CLOSE);
    write_all(file, rank == 0 ? mine() : std::vector<int>{});
    close_file(file);
    once([] { require(!exists("deleted"), "MPI_MODE_DELETE_ON_CLOSE"); });

    file = open_file("exclusive", read_and_create | MPI_MODE_EXCL);
    view_interleaved(file);
    write_and_read(file);
    close_file(file);
    MPI_Barrier(MPI_COMM_WORLD);
    int const code = MPI_File_open(MPI_COMM_WORLD, "exclusive", read_and_create | MPI_MODE_EXCL, MPI_INFO_NULL, &file);
    require(code != MPI_SUCCESS, "MPI_MODE_EXCL opened a file that is there");

    file = open_file("exclusive", MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_Offset position = -1;
    right(MPI_File_get_position(file, &position), "get_position");
    require(position == static_cast<MPI_Offset>(each) * ranks * static_cast<MPI_Offset>(sizeof(int)),
            "where MPI_MODE_APPEND begins");
    auto const more = mine(3);
    right(MPI_File_seek(file, rank * each * static_cast<MPI_Offset>(sizeof(int)), MPI_SEEK_CUR), "seek");
    write_all(file, more);
    close_file(file);
    once([] {
        struct stat status {};
        require(::stat("exclusive", &status) == 0 && status.st_size == 2LL * each * ranks * 4, "the size appended to");
    });

    file = open_file("exclusive", MPI_MODE_RDONLY | MPI_MODE_UNIQUE_OPEN);
    view_interleaved(file);
    require_read(file, mine());
    close_file(file);

    file = open_file("sequential", MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
    int const letter = 'a' + rank;
    right(MPI_File_write_ordered(file, &letter, 1, MPI_INT, MPI_STATUS_IGNORE), "write_ordered");
    right(MPI_File_write_ordered(file, &letter, 1, MPI_INT, MPI_STATUS_IGNORE), "write_ordered");
    close_file(file);
    once([] {
        std::ifstream in("sequential", std::ios::binary);
        for (int i = 0; i < 2 * ranks; ++i) {
            int found = 0;
            in.read(reinterpret_cast<char*>(&found), sizeof found);
            require(in.good() && found == 'a' + i % ranks, "what was written in order");
        }
    });
}

/// Holes stay holes, and what another rank wrote before is kept.
void holes()
{
    auto file = open_file("holes");
    right(MPI_File_set_size(file, 0), "set_size");
    MPI_Datatype spread = MPI_DATATYPE_NULL;
    MPI_Type_vector(50, 1, 100, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    char native[] = "native";
    right(MPI_File_set_view(file, static_cast<MPI_Offset>(rank) * 40, MPI_INT, spread, native, MPI_INFO_NULL), "view");
    MPI_Type_free(&spread);
    write_all(file, numbers(rank * 1000, 50));
    require_read(file, numbers(rank * 1000, 50));
    close_file(file);
    once([] {
        std::ifstream in("holes", std::ios::binary);
        std::string const text((std::istreambuf_iterator<char>(in)), {});
        for (std::size_t i = 0; i + 4 <= text.size(); i += 4) {
            int found = 0;
            std::memcpy(&found, text.data() + i, sizeof found);
            int const line = static_cast<int>(i / 400);
            int const owner = static_cast<int>(i % 400 / 40);
            bool const written = i % 40 == 0 && owner < ranks && line < 50;
            if (written) require(found == owner * 1000 + line * 7, "what lies beside a hole");
            if (!written && strict()) require(found == 0, "a hole");  // others leave there what was in their buffers
        }
    });
}

/// Several handles on several communicators, used in turn.
void several_files()
{
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    auto world = open_file("world");
    auto part = open_file("half" + std::to_string(rank % 2), read_and_create, half);
    auto self = open_file("self" + std::to_string(rank), read_and_create, MPI_COMM_SELF);
    view_interleaved(world);
    int in_half = 0;
    int of_half = 1;
    MPI_Comm_rank(half, &in_half);
    MPI_Comm_size(half, &of_half);
    MPI_Comm_free(&half);
    auto type = interleaved(20, of_half, in_half);
    view(part, type);
    MPI_Type_free(&type);
    view(self, MPI_INT);
    for (int i = 0; i < 3; ++i)
        for (auto* file : {&world, &part, &self}) write_and_read(*file, i);
    close_file(part);
    close_file(world);
    close_file(self);
    require_interleaved("world", 2);
}

/// One rank of the communicator has nothing, in turn; and all of them once.
void nothing_to_write()
{
    auto file = open_file("nothing");
    view_interleaved(file);
    write_all(file, mine());
    for (int idle = 0; idle <= ranks; ++idle) {
        right(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
        write_all(file, rank == idle || idle == ranks ? std::vector<int>{} : mine(idle));
    }
    write_all(file, {});
    require_read(file, mine(rank == ranks - 1 ? ranks - 2 : ranks - 1));
    close_file(file);
}

/// A rank that has nothing to write says so with a view of nothing; what keeps one rank from being served is a matter
/// of all.
void view_of_nothing()
{
    auto file = open_file("view of nothing");
    view_interleaved(file);
    write_and_read(file, -1);
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&none);
    for (int idle = 0; idle < ranks; ++idle) {
        if (rank == idle)
            view(file, none);
        else
            view_interleaved(file);
        write_all(file, rank == idle ? std::vector<int>{} : mine(idle));
        view_interleaved(file);
        require_read(file, mine(rank == idle ? idle - 1 : idle));
    }
    MPI_Type_free(&none);
    close_file(file);
}

int handler_calls = 0;
int handler_class = MPI_SUCCESS;

void on_error(MPI_File*, int* code, ...)
{
    ++handler_calls;
    handler_class = class_of(*code);
}

/// The file's error handler is called, once, with what the call returns; the communicator's is not.
void error_handlers()
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, "nowhere/file", read_and_create, MPI_INFO_NULL, &file);
    require(code != MPI_SUCCESS, "a file in a folder that is not there");
    say_class("a folder that is not there", code);
    code = MPI_File_open(MPI_COMM_WORLD, "missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    say_class("a file that is not there", code);
    code = MPI_File_delete("missing", MPI_INFO_NULL);
    say_class("deleting it", code);

    file = open_file("handled");
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Errhandler inherited = MPI_ERRHANDLER_NULL;
    right(MPI_File_get_errhandler(file, &inherited), "get_errhandler");
    require(inherited == MPI_ERRORS_RETURN, "the handler of a new file");
    MPI_File_create_errhandler(on_error, &handler);
    right(MPI_File_set_errhandler(file, handler), "set_errhandler");
    MPI_Errhandler_free(&handler);
    std::vector<int> data = mine();
    auto const expect = [&](std::string const& what, int result) {
        require(result != MPI_SUCCESS, what + " is an error");
        require(handler_calls == 1, what + ": " + std::to_string(handler_calls) + " calls of the handler");
        require(handler_class == class_of(result), what + ": the class that the handler saw");
        handler_calls = 0;
        say_class(what, result);
    };
    expect("a negative count", MPI_File_write_all(file, data.data(), -1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    expect("a type that is not committed", MPI_File_write_all(file, data.data(), 1, uncommitted, MPI_STATUS_IGNORE));
    MPI_Type_free(&uncommitted);
    view_interleaved(file);
    write_and_read(file);
    require(handler_calls == 0, "the handler is not called without an error");
    close_file(file);
}

/// A file system of 256 KiB in the directory `small`; false if that is not permitted.
bool mount_small()
{
    int mounted = 0;
    if (rank == 0) {
        ::mkdir("small", 0755);
        mounted = ::mount("tmpfs", "small", "tmpfs", 0, "size=256k") == 0;
    }
    MPI_Bcast(&mounted, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return mounted != 0;
}

/// The same class, of a full file system, on all ranks; and MPI goes on. Prints that it could not, where nothing may be
/// mounted.
void no_space()
{
    if (!mount_small()) return say("no_space: mounting a tmpfs is not permitted here");
    auto file = open_file("small/full");
    auto const much = numbers(rank, 100'000);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(1000, 100, 100 * ranks, MPI_INT, &type);
    MPI_Type_commit(&type);
    char native[] = "native";
    right(MPI_File_set_view(file, static_cast<MPI_Offset>(rank) * 400, MPI_INT, type, native, MPI_INFO_NULL), "view");
    MPI_Type_free(&type);
    int const code = MPI_File_write_all(file, much.data(), static_cast<int>(much.size()), MPI_INT, MPI_STATUS_IGNORE);
    // OMPIO tells the ranks that write, if any.
    if (strict()) {
        int const found = class_of(code);
        require(found == MPI_ERR_NO_SPACE || found == MPI_ERR_IO, "the class of a full file system's error");
        require_same_class("a full file system", code);
    }
    right(MPI_File_close(&file), "close");
    once([] { ::umount2("small", MNT_DETACH); });
    auto next = open_file("after a full one");
    view_interleaved(next);
    write_and_read(next);
    close_file(next);
    require_interleaved("after a full one");
}

MPI_Info hint(char const* name, char const* value)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, name, value);
    return info;
}

MPI_File open_direct(std::string const& name)
{
    auto info = hint("tapioca_direct", "always");
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, name.c_str(), read_and_create, info, &file), "open " + name);
    MPI_Info_free(&info);
    return file;
}

MPI_Offset place_of(int block)
{
    return static_cast<MPI_Offset>(block) * each * static_cast<MPI_Offset>(sizeof(int));
}

/// Each rank its own block, again and again, until one of them has less, nothing, or another rank's block: what a rank
/// does in the expectation that nothing changes must not matter then. At last some read beyond the end.
void again_and_again()
{
    constexpr int rounds = 12;
    auto const block_of = [](int round) { return round * ranks + (round == 8 ? ranks - 1 - rank : rank); };
    auto const count_in = [](int round) {
        bool const last = rank == ranks - 1;
        return round == 3 && last ? 0 : round == 5 && last ? each / 2 : each;
    };
    auto file = open_direct("again");
    for (int round = 0; round < rounds; ++round) {
        auto const data = mine(round);
        MPI_Status status;
        right(MPI_File_write_at_all(file, place_of(block_of(round)), data.data(), count_in(round), MPI_INT, &status),
              "write_at_all");
        require(count_of(status) == count_in(round), "the count of a write in round " + std::to_string(round));
    }
    for (int round = 0; round <= rounds; ++round) {
        std::vector<int> back(each, -1);
        MPI_Status status;
        right(MPI_File_read_at_all(file, place_of(block_of(round)), back.data(), each, MPI_INT, &status),
              "read_at_all");
        auto const wanted = round < rounds ? count_in(round) : 0;
        bool const at_end = round == rounds;                             // which OMPIO counts wrongly
        bool const sure = at_end ? strict() : round != 3 && round != 5;  // others have written beyond these
        require(!sure || count_of(status) == wanted, "the count of a read in round " + std::to_string(round));
        auto const data = mine(round);
        require(std::equal(data.begin(), data.begin() + wanted, back.begin()), "what was read");
        require(!at_end || !strict() || back == std::vector<int>(each, -1), "what was not read");
    }
    close_file(file);
}

/// As no_space(), when each rank has written its own block for a while.
void no_space_in_the_end()
{
    if (!mount_small()) return say("no_space_in_the_end: mounting a tmpfs is not permitted here");
    auto file = open_direct("small/full");
    bool full = false;
    for (int round = 0; round < 12; ++round) {
        auto const data = mine(round);
        int const code =
            MPI_File_write_at_all(file, place_of(round * ranks + rank), data.data(), each, MPI_INT, MPI_STATUS_IGNORE);
        full = full || code != MPI_SUCCESS;
        if (!strict()) continue;
        int const found = class_of(code);
        require(found == MPI_SUCCESS || found == MPI_ERR_NO_SPACE || found == MPI_ERR_IO, "the class of the error");
        require_same_class("a file system that becomes full", code);
    }
    require(!strict() || full, "the file system is full in the end");
    (void)MPI_File_close(&file);
    once([] { ::umount2("small", MNT_DETACH); });
}

void plain()
{
    auto file = open_file("plain");
    view_interleaved(file);
    for (int i = 0; i < 3; ++i) write_and_read(file, i);
    close_file(file);
    require_interleaved("plain", 2);
}

/// Each rank its own block, as simple as can be: three writes and three reads, in turns.
void blocks()
{
    auto file = open_file("blocks");
    auto const bytes = each * static_cast<MPI_Offset>(sizeof(int));
    for (int i = 0; i < 3; ++i) {
        auto const data = mine(i);
        right(MPI_File_write_at_all(file, rank * bytes, data.data(), each, MPI_INT, MPI_STATUS_IGNORE), "write_at_all");
        std::vector<int> found(each);
        right(MPI_File_read_at_all(file, rank * bytes, found.data(), each, MPI_INT, MPI_STATUS_IGNORE), "read_at_all");
        require(found == data, "what was written is read");
    }
    close_file(file);
}

/// The last rank's block is half beyond the end of the file, and nothing was accessed before.
void end_of_file()
{
    once([] {
        std::ofstream out("short");
        for (int of = 0; of < ranks; ++of) {
            auto const data = numbers(of * 1'000'000);
            auto const count = of < ranks - 1 ? each : each / 2;
            out.write(reinterpret_cast<char const*>(data.data()), count * static_cast<std::streamsize>(sizeof(int)));
        }
    });
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, "short", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open");
    auto const wanted = rank < ranks - 1 ? each : each / 2;
    std::vector<int> found(each, -1);
    MPI_Status status;
    right(MPI_File_read_at_all(file, rank * each * static_cast<MPI_Offset>(sizeof(int)), found.data(), each, MPI_INT,
                               &status),
          "read_at_all");
    close_file(file);
    auto data = mine();
    std::fill(data.begin() + wanted, data.end(), -1);
    require(!strict() || count_of(status) == wanted, "the count of a read across the end");
    require(strict() ? found == data : std::equal(data.begin(), data.begin() + wanted, found.begin()), "what was read");
}

/// Hints may differ from rank to rank; files may be left alone by one rank.
void differing_hints()
{
    auto file = open_file("hinted");
    view_interleaved(file);
    write_and_read(file);
    auto info = rank == 1 ? hint("tapioca_nbaggr", "1") : hint("of_nobody", "1");
    right(MPI_File_set_info(file, info), "set_info");
    MPI_Info_free(&info);
    write_and_read(file, 1);
    write_and_read(file, 2);
    close_file(file);
    require_interleaved("hinted", 2);

    info = hint("tapioca", "false");
    right(MPI_File_open(MPI_COMM_WORLD, "left alone by one", read_and_create, rank == 1 ? info : MPI_INFO_NULL, &file),
          "open");
    MPI_Info_free(&info);
    view_interleaved(file);
    write_and_read(file);
    close_file(file);
    require_interleaved("left alone by one");
}

/// How often the library has opened a file of this name, by the report. On rank 0.
std::size_t accounts_of(std::string const& name)
{
    std::ifstream report(std::getenv("TAPIOCA_REPORT"));
    std::string const text{std::istreambuf_iterator<char>(report), {}};
    auto const path = "/" + name + "\",";
    std::size_t count = 0;
    for (auto at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) ++count;
    return count;
}

/// Programs hand back the hints that they are shown, HDF5 with every access: there is nothing new in them, and no
/// reason to open the file again.
void hints_handed_back()
{
    auto file = open_file("handed back");
    for (int i = 0; i < 3; ++i) {
        MPI_Info info = MPI_INFO_NULL;
        right(MPI_File_get_info(file, &info), "get_info");
        right(MPI_File_set_info(file, info), "set_info");
        MPI_Info_free(&info);
        view_interleaved(file);
        write_and_read(file, i);
    }
    close_file(file);
    require_interleaved("handed back", 2);
    if (strict()) once([] { require(accounts_of("handed back") == 1, "the file was opened once"); });
}

/// A name with a prefix is that of a file without one for some MPIs, and of itself for others: never of a third.
void prefix()
{
    once([] { std::ofstream("prefixed") << "of somebody else"; });
    std::string const name = "nothing:prefixed";
    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(MPI_COMM_WORLD, name.c_str(), read_and_create, MPI_INFO_NULL, &file) == MPI_SUCCESS) {
        view_interleaved(file);
        write_and_read(file);
        close_file(file);
        if (::access(name.c_str(), F_OK) == 0) {
            require_interleaved(name);
            std::ifstream other("prefixed");
            std::string const text{std::istreambuf_iterator<char>(other), {}};
            require(text == "of somebody else", "a file with a similar name is left alone");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void use_and_finalize()
{
    auto file = open_file("at exit");
    view_interleaved(file);
    write_and_read(file);
    close_file(file);
    require_interleaved("at exit");
    MPI_Finalize();
}

/// Some programs tidy up when they exit, after what was made since is gone.
void at_exit()
{
    finalized_at_exit = true;
    std::atexit(use_and_finalize);
    plain();
}

void never_closed()
{
    auto file = open_file("unclosed");
    view_interleaved(file);
    write_and_read(file);
    require_interleaved("unclosed");
}

/// Each of several threads writes and reads its own file, all of them at the same time.
void in_threads(std::string const& name, std::vector<MPI_Comm> const& comms, bool open_in_thread)
{
    int provided = 0;
    MPI_Query_thread(&provided);
    require(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
    std::vector<MPI_File> files(comms.size(), MPI_FILE_NULL);
    auto const path = [&](std::size_t i) { return name + std::to_string(i); };
    auto const open = [&](std::size_t i) {
        files[i] = open_file(path(i), read_and_create, comms[i]);
        view_interleaved(files[i]);
    };
    if (!open_in_thread)
        for (std::size_t i = 0; i < comms.size(); ++i) open(i);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < comms.size(); ++i)
        threads.emplace_back([&, i] {
            if (open_in_thread) open(i);
            for (int round = 0; round < 4; ++round) write_and_read(files[i], round + static_cast<int>(i));
            if (open_in_thread) close_file(files[i]);
        });
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < comms.size(); ++i) {
        if (!open_in_thread) close_file(files[i]);
        require_interleaved(path(i), 3 + static_cast<int>(i));
    }
}

/// ROMIO in MPICH keeps one lock through every collective call, so that two of them in two threads can wait for ever:
/// there the files are opened and closed by one thread, and without the drop-in library these scenarios are not run.
#ifdef MPICH_NUMVERSION
constexpr bool may_open_in_threads = false;
#else
constexpr bool may_open_in_threads = true;
#endif

void threads_with_own_communicators()
{
    std::vector<MPI_Comm> comms(3);
    for (auto& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    in_threads("own", comms, may_open_in_threads);
    for (auto& comm : comms) MPI_Comm_free(&comm);
}

void threads_on_one_communicator()
{
    in_threads("shared", std::vector<MPI_Comm>(3, MPI_COMM_WORLD), false);
}

/// Every rank's threads have files of their own, some at the same time and one after the other. What the program said
/// of errors on its own communicator holds.
void threads_on_self()
{
    MPI_Errhandler const before = MPI_ERRORS_ARE_FATAL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    constexpr std::size_t together = 4;
    auto const path = [&](std::size_t i) { return "self" + std::to_string(rank) + "." + std::to_string(i); };
    for (int turn = 0; turn < 8; ++turn) {
        std::vector<MPI_File> files(together, MPI_FILE_NULL);
        auto const open = [&](std::size_t i) { files[i] = open_file(path(i), read_and_create, MPI_COMM_SELF); };
        if (!may_open_in_threads)
            for (std::size_t i = 0; i < together; ++i) open(i);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < together; ++i)
            threads.emplace_back([&, i] {
                if (may_open_in_threads) open(i);
                view_interleaved(files[i]);
                for (int round = 0; round < 2; ++round) write_and_read(files[i], round + static_cast<int>(i));
                if (may_open_in_threads) close_file(files[i]);
            });
        for (auto& thread : threads) thread.join();
        if (!may_open_in_threads)
            for (auto& file : files) close_file(file);
    }
    MPI_Errhandler after = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &after);
    require(after == before, "the error handler of MPI_COMM_SELF");
    MPI_Errhandler_free(&after);
}

/// A thread closes handles that may be staged, while others use second handles of the same files.
void threads_close_beside_others()
{
    constexpr std::size_t files = 24;
    constexpr int count = 4;
    constexpr MPI_Offset second = each * sizeof(int);  // where the second handles write
    auto const path = [&](std::size_t i) { return "beside" + std::to_string(rank) + "." + std::to_string(i); };
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca_stage", "dram");
    std::vector<MPI_File> staged(files, MPI_FILE_NULL);
    std::vector<MPI_File> others(files, MPI_FILE_NULL);
    for (std::size_t i = 0; i < files; ++i) {
        right(MPI_File_open(MPI_COMM_SELF, path(i).c_str(), read_and_create, info, &staged[i]), "open");
        right(MPI_File_write_at_all(staged[i], 0, mine().data(), each, MPI_INT, MPI_STATUS_IGNORE), "write");
        others[i] = open_file(path(i), MPI_MODE_RDWR, MPI_COMM_SELF);
    }
    MPI_Info_free(&info);
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        for (auto& file : staged) close_file(file);
    });
    threads.emplace_back([&] {
        for (auto const& file : others) {
            auto const bytes = numbers(5, count);
            right(MPI_File_write_at(file, second, bytes.data(), count, MPI_INT, MPI_STATUS_IGNORE), "write beside");
        }
    });
    threads.emplace_back([&] {
        for (auto const& file : others) {
            MPI_Offset size = 0;
            right(MPI_File_get_size(file, &size), "size");
            require(size >= second, "what the staged handle wrote is in the file");
        }
    });
    for (auto& thread : threads) thread.join();
    for (auto& file : others) close_file(file);
    for (std::size_t i = 0; i < files; ++i) {
        auto file = open_file(path(i), MPI_MODE_RDONLY, MPI_COMM_SELF);
        std::vector<int> found(each + count);
        right(MPI_File_read_at(file, 0, found.data(), each + count, MPI_INT, MPI_STATUS_IGNORE), "read");
        close_file(file);
        auto wanted = mine();
        auto const bytes = numbers(5, count);
        wanted.insert(wanted.end(), bytes.begin(), bytes.end());
        require(found == wanted, "what both handles wrote");
    }
}

std::map<std::string, std::function<void()>> const scenarios = {
    {"freed_handles", freed_handles},
    {"relative_path", relative_path},
    {"unlinked", unlinked},
    {"unlinked_before_use", unlinked_before_use},
    {"renamed", renamed},
    {"pending_message", pending_message},
    {"modes", modes},
    {"holes", holes},
    {"several_files", several_files},
    {"nothing_to_write", nothing_to_write},
    {"view_of_nothing", view_of_nothing},
    {"error_handlers", error_handlers},
    {"no_space", no_space},
    {"again_and_again", again_and_again},
    {"no_space_in_the_end", no_space_in_the_end},
    {"differing_hints", differing_hints},
    {"hints_handed_back", hints_handed_back},
    {"prefix", prefix},
    {"at_exit", at_exit},
    {"never_closed", never_closed},
    {"plain", plain},
    {"blocks", blocks},
    {"end_of_file", end_of_file},
    {"threads_with_own_communicators", threads_with_own_communicators},
    {"threads_on_one_communicator", threads_on_one_communicator},
    {"threads_on_self", threads_on_self},
    {"threads_close_beside_others", threads_close_beside_others},
    {"levels", plain},
};

}  // namespace

int main(int argc, char** argv)
{
    bool threads = false;
    bool levels = false;
    for (int i = 1; i < argc; ++i) {
        threads = threads || std::string(argv[i]).starts_with("threads_");
        levels = levels || argv[i] == std::string("levels");
        if (scenarios.contains(argv[i])) continue;
        for (auto const& [name, run] : scenarios) std::printf("%s\n", name.c_str());
        return 2;
    }
    if (threads || levels) {  // ranks of one job may have asked for different levels
        bool const odd = ::getpid() % 2 != 0;
        int provided = 0;
        MPI_Init_thread(&argc, &argv, levels && odd ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; ++i) {
        scenarios.at(argv[i])();
        MPI_Barrier(MPI_COMM_WORLD);
        say(std::string(argv[i]) + ": ok");
    }
    if (!finalized_at_exit) MPI_Finalize();
    return 0;
}
