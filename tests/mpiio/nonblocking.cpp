// Programs with nonblocking, split and ordered collective accesses: nonblocking SCENARIO... runs them in one job. Each
// checks what MPI promises, whichever library serves it; with BEHAVIOUR_STRICT in the environment, also what only the
// drop-in library does.
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mpiio/program.hpp"

namespace {

constexpr int each = 5000;
constexpr auto bytes_each = static_cast<MPI_Offset>(each * sizeof(int));

bool strict()
{
    return std::getenv("BEHAVIOUR_STRICT") != nullptr;
}

std::vector<int> data_of(int who, int salt)
{
    std::vector<int> data(each);
    std::iota(data.begin(), data.end(), who * 1'000'000 + salt * 100'000);
    return data;
}

std::vector<int> mine(int salt = 0)
{
    return data_of(rank, salt);
}

void meet()
{
    MPI_Barrier(MPI_COMM_WORLD);
}

/// A new file.
MPI_File open_file(std::string const& name, MPI_Comm comm = MPI_COMM_WORLD, MPI_Info info = MPI_INFO_NULL)
{
    if (rank == 0) ::unlink(name.c_str());
    meet();
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(comm, name.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file), "open " + name);
    return file;
}

void close(MPI_File& file)
{
    right(MPI_File_close(&file), "close");
}

/// As bytes, at this rank's place in the `salt`th part of the file.
MPI_Offset place(int salt, int who = rank)
{
    return (static_cast<MPI_Offset>(salt) * ranks + who) * bytes_each;
}

MPI_Request start_write(MPI_File file, std::vector<int> const& data, int salt)
{
    MPI_Request request = MPI_REQUEST_NULL;
    right(MPI_File_iwrite_at_all(file, place(salt), data.data(), each, MPI_INT, &request), "iwrite_at_all");
    return request;
}

void wait_for(MPI_Request& request, int count = each)
{
    MPI_Status status;
    right(MPI_Wait(&request, &status), "wait");
    int got = -1;
    MPI_Get_count(&status, MPI_INT, &got);
    require(got == count, "the status counts " + std::to_string(got) + ", not " + std::to_string(count));
    require(request == MPI_REQUEST_NULL, "the request is gone");
}

/// What plain calls find in the file.
std::vector<int> look(std::string const& name, MPI_Offset at, int count = each)
{
    std::vector<int> found(static_cast<std::size_t>(count), -1);
    int const fd = ::open(name.c_str(), O_RDONLY);
    require(fd >= 0, "open " + name + " without MPI");
    (void)!::pread(fd, found.data(), found.size() * sizeof(int), at);
    ::close(fd);
    return found;
}

void check(std::string const& name, int salts)
{
    meet();
    for (int salt = 0; salt < salts; ++salt)
        for (int who = 0; who < ranks; ++who)
            require(look(name, place(salt, who)) == data_of(who, salt),
                    name + ": part " + std::to_string(salt) + " of rank " + std::to_string(who));
    meet();
}

void view_interleaved(MPI_File file)
{
    constexpr int block = 10;
    MPI_Datatype blocks = MPI_DATATYPE_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(1, block, block, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, static_cast<MPI_Aint>(block * ranks) * 4, &type);
    MPI_Type_commit(&type);
    char native[] = "native";
    right(MPI_File_set_view(file, static_cast<MPI_Offset>(rank) * block * 4, MPI_INT, type, native, MPI_INFO_NULL),
          "set_view");
    MPI_Type_free(&blocks);
    MPI_Type_free(&type);
}

// No MPI call of anybody is needed for the data to get into the file, not even at a file's first access.
void background()
{
    if (!strict()) return;
    auto file = open_file("background");
    auto const data = mine();
    auto request = start_write(file, data, 0);
    auto const patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int who = 0; who < ranks; ++who)
        while (look("background", place(0, who)) != data_of(who, 0)) {
            require(std::chrono::steady_clock::now() < patience, "nothing moves without an MPI call");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    wait_for(request);
    // The same of a split one.
    right(MPI_File_write_at_all_begin(file, place(1), mine(1).data(), 0, MPI_INT), "begin");
    MPI_Status status;
    right(MPI_File_write_at_all_end(file, nullptr, &status), "end");
    auto const more = mine(1);
    right(MPI_File_write_at_all_begin(file, place(1), more.data(), each, MPI_INT), "begin");
    for (int who = 0; who < ranks; ++who)
        while (look("background", place(1, who)) != data_of(who, 1)) {
            require(std::chrono::steady_clock::now() < patience, "nothing moves without an MPI call");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    right(MPI_File_write_at_all_end(file, more.data(), &status), "end");
    close(file);
}

// A rank's wait ends when all have begun the access, wherever the others are by then; and beginning waits for nobody.
void progress()
{
    auto file = open_file("progress");
    auto const data = mine();
    int word = 0;
    if (rank == 1) MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    auto request = start_write(file, data, 0);
    if (rank == 0) {
        MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        wait_for(request);
        for (int to = 1; to < ranks; ++to) MPI_Send(&word, 1, MPI_INT, to, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wait_for(request);
    }
    close(file);
    check("progress", 1);
}

// Ranks may begin accesses of different files in different orders.
void orders()
{
    auto a = open_file("order_a");
    auto b = open_file("order_b");
    auto const data = mine();
    bool const odd = rank % 2 != 0;
    MPI_Request requests[2];
    requests[0] = start_write(odd ? b : a, data, 0);
    requests[1] = start_write(odd ? a : b, data, 0);
    if (odd) wait_for(requests[0]);
    right(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "waitall");
    // One of them blocking.
    auto const more = mine(1);
    if (odd) right(MPI_File_write_at_all(b, place(1), more.data(), each, MPI_INT, MPI_STATUS_IGNORE), "write_at_all");
    auto request = start_write(a, more, 1);
    if (!odd) right(MPI_File_write_at_all(b, place(1), more.data(), each, MPI_INT, MPI_STATUS_IGNORE), "write_at_all");
    wait_for(request);
    close(b);
    close(a);
    check("order_a", 2);
    check("order_b", 2);
}

// Many at a time, through a view and at the individual pointer, which moves when the access is begun; then read.
void many()
{
    constexpr int count = 12;
    auto file = open_file("many");
    view_interleaved(file);
    std::vector<std::vector<int>> data;
    std::vector<MPI_Request> requests(count);
    for (int i = 0; i < count; ++i) {
        data.push_back(mine(i));
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(5, MPI_INT, &type);
        MPI_Type_commit(&type);
        right(MPI_File_iwrite_all(file, data.back().data(), each / 5, type, &requests[static_cast<std::size_t>(i)]),
              "iwrite_all");
        MPI_Type_free(&type);
        MPI_Offset position = 0;
        MPI_File_get_position(file, &position);
        require(position == static_cast<MPI_Offset>(each) * (i + 1), "the pointer moves as the access is begun");
    }
    right(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "waitall");
    right(MPI_File_sync(file), "sync");
    meet();
    right(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
    std::vector<std::vector<int>> found(count, std::vector<int>(each));
    for (int i = 0; i < count; ++i)
        right(MPI_File_iread_all(file, found[static_cast<std::size_t>(i)].data(), each, MPI_INT,
                                 &requests[static_cast<std::size_t>(i)]),
              "iread_all");
    for (auto& request : requests) wait_for(request);
    require(found == data, "what was read");
    // Behind the end of the file there is nothing.
    right(MPI_File_iread_at_all(file, static_cast<MPI_Offset>(each) * count, found[0].data(), each, MPI_INT,
                                requests.data()),
          "iread_at_all");
    if (strict()) wait_for(requests[0], 0);
    right(MPI_Waitall(1, requests.data(), MPI_STATUSES_IGNORE), "waitall");
    close(file);
}

// All functions that complete requests, with ordinary ones and none among them.
void completion()
{
    auto file = open_file("completion");
    auto const from = (rank + ranks - 1) % ranks;
    for (int way = 0; way < 8; ++way) {
        auto const data = mine(way);
        int sent = way;
        int received = -1;
        MPI_Status status;
        MPI_Status statuses[4];
        MPI_Request requests[4] = {MPI_REQUEST_NULL, start_write(file, data, way), MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Irecv(&received, 1, MPI_INT, from, way, MPI_COMM_WORLD, &requests[3]);
        MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, way, MPI_COMM_WORLD, &requests[0]);
        int flag = 0;
        int index = -1;
        int indices[4];
        int completed = 0;
        int all = 0;
        int got = -1;
        switch (way) {
        case 0:
            right(MPI_Waitall(4, requests, statuses), "waitall");
            got = 1;
            break;
        case 1:
            for (all = 0; all < 3; ++all) {
                right(MPI_Waitany(4, requests, &index, &status), "waitany");
                if (index == 1) MPI_Get_count(&status, MPI_INT, &got);
            }
            right(MPI_Waitany(4, requests, &index, &status), "waitany");
            require(index == MPI_UNDEFINED, "waitany of none");
            require(got == each, "waitany's status");
            break;
        case 2:
            while (all < 3) {
                right(MPI_Testany(4, requests, &index, &flag, &status), "testany");
                if (flag) ++all;
            }
            break;
        case 3:
            while (all < 3) {
                right(MPI_Waitsome(4, requests, &completed, indices, statuses), "waitsome");
                all += completed;
            }
            break;
        case 4:
            while (all < 3) {
                right(MPI_Testsome(4, requests, &completed, indices, statuses), "testsome");
                all += completed;
            }
            break;
        case 5:
            while (!flag) right(MPI_Testall(4, requests, &flag, statuses), "testall");
            MPI_Get_count(&statuses[1], MPI_INT, &got);
            require(got == each, "testall's status");
            break;
        case 6:
            while (!flag) right(MPI_Test(&requests[1], &flag, &status), "test");
            MPI_Get_count(&status, MPI_INT, &got);
            require(got == each, "test's status");
            right(MPI_Waitall(4, requests, statuses), "waitall");
            break;
        default:
            while (!flag) right(MPI_Request_get_status(requests[1], &flag, &status), "get_status");
            MPI_Get_count(&status, MPI_INT, &got);
            require(got == each && requests[1] != MPI_REQUEST_NULL, "get_status");
            wait_for(requests[1]);
            right(MPI_Waitall(4, requests, statuses), "waitall");
        }
        for (auto const& request : requests) require(request == MPI_REQUEST_NULL, "all are complete");
        require(received == way, "the message");
    }
    close(file);
    check("completion", 8);
}

// Ranks whose memory or view cannot be served, or who have nothing, do not keep the others from it.
void unequal()
{
    auto file = open_file("unequal");
    {
        auto data = mine();
        MPI_Request request = MPI_REQUEST_NULL;
        right(MPI_File_iwrite_at_all(file, place(0), data.data(), rank == 1 ? 0 : each, MPI_INT, &request), "iwrite");
        wait_for(request, rank == 1 ? 0 : each);
        right(MPI_File_iwrite_at_all(file, place(0), data.data(), rank == 1 ? each : 0, MPI_INT, &request), "iwrite");
        wait_for(request, rank == 1 ? each : 0);
        check("unequal", 1);
    }
    // Rank 0 reads through a view whose tiles overlap.
    if (strict()) {
        MPI_Datatype four = MPI_DATATYPE_NULL;
        MPI_Datatype tile = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(4, MPI_INT, &four);
        MPI_Type_create_resized(four, 0, 2 * sizeof(int), &tile);
        MPI_Type_commit(&tile);
        char native[] = "native";
        right(MPI_File_set_view(file, place(0), MPI_INT, rank == 0 ? tile : MPI_INT, native, MPI_INFO_NULL),
              "set_view");
        MPI_Type_free(&four);
        MPI_Type_free(&tile);
        constexpr int some = 400;
        std::vector<int> found(some);
        MPI_Request request = MPI_REQUEST_NULL;
        right(MPI_File_iread_at_all(file, 0, found.data(), some, MPI_INT, &request), "iread_at_all");
        wait_for(request, some);
        auto const data = mine();
        for (int i = 0; i < some; ++i) {
            auto const at = static_cast<std::size_t>(rank == 0 ? i / 4 * 2 + i % 4 : i);
            require(found[static_cast<std::size_t>(i)] == data[at], "what was read");
        }
    }
    close(file);
}

int handler_calls = 0;
void count_call(MPI_File* /*file*/, int* /*code*/, ...)
{
    ++handler_calls;
}

void require_same_class(int code, std::string const& what)
{
    int const own = class_of(code);
    int least = 0;
    int most = 0;
    MPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    require(least == most && own != MPI_SUCCESS, what + ": the same error on all ranks");
}

// An error comes with the completion, the same to all, through the file's handler.
void errors()
{
    if (!strict()) return;
    auto file = open_file("errors");
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_File_create_errhandler(count_call, &handler);
    MPI_File_set_errhandler(file, handler);
    auto const data = mine();
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before = {};
    ::getrlimit(RLIMIT_FSIZE, &before);
    auto const limit = rlimit{static_cast<rlim_t>(bytes_each), before.rlim_max};
    meet();
    ::setrlimit(RLIMIT_FSIZE, &limit);
    meet();
    auto request = start_write(file, data, 0);
    require_same_class(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    require(handler_calls == 1, "the file's handler hears of it");
    MPI_Request requests[2] = {MPI_REQUEST_NULL, start_write(file, data, 0)};
    MPI_Status statuses[2];
    require(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS, "waitall says where to look");
    require_same_class(statuses[1].MPI_ERROR, "waitall");
    require(handler_calls == 2, "the file's handler hears of it again");
    right(MPI_File_write_at_all_begin(file, place(0), data.data(), each, MPI_INT), "begin");
    require_same_class(MPI_File_write_at_all_end(file, data.data(), MPI_STATUS_IGNORE), "end");
    meet();
    ::setrlimit(RLIMIT_FSIZE, &before);
    meet();
    request = start_write(file, data, 0);  // and it works again
    wait_for(request);
    close(file);
    MPI_Errhandler_free(&handler);
    check("errors", 1);
}

// What MPI forbids must not end in a crash, nor in a loss of what was written before the file is closed.
void forbidden()
{
    if (!strict()) return;
    {
        auto file = open_file("forbidden");
        auto const data = mine();
        auto request = start_write(file, data, 0);
        right(MPI_Request_free(&request), "request_free");
        require(request == MPI_REQUEST_NULL, "the request is gone");
        auto const more = mine(1);
        request = start_write(file, more, 1);
        right(MPI_Cancel(&request), "cancel");
        MPI_Status status;
        right(MPI_Wait(&request, &status), "wait");
        int cancelled = -1;
        MPI_Test_cancelled(&status, &cancelled);
        require(cancelled == 0, "there is no way back");
        auto const last = mine(2);
        request = start_write(file, last, 2);
        close(file);  // before it is complete
        right(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    }
    check("forbidden", 3);
}

// Ordered accesses, and the shared pointer after them.
void ordered()
{
    auto file = open_file("ordered");
    int const count = 100 * (rank + 1);
    auto const data = mine();
    MPI_Status status;
    right(MPI_File_write_ordered(file, data.data(), count * 4, MPI_BYTE, &status), "write_ordered");
    MPI_Offset const all = static_cast<MPI_Offset>(100) * ranks * (ranks + 1) / 2 * 4;
    MPI_Offset pointer = -1;
    right(MPI_File_get_position_shared(file, &pointer), "get_position_shared");
    require(pointer == all, "the shared pointer is behind all of it");
    meet();
    int const word = 4711;
    if (rank == 1) right(MPI_File_write_shared(file, &word, 4, MPI_BYTE, &status), "write_shared");
    right(MPI_File_write_ordered_begin(file, data.data(), count * 4, MPI_BYTE), "begin");
    right(MPI_File_write_ordered_end(file, data.data(), &status), "end");
    right(MPI_File_get_position_shared(file, &pointer), "get_position_shared");
    require(pointer == 2 * all + 4, "and again, with what was written between");
    meet();
    right(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "seek_shared");
    std::vector<int> found(static_cast<std::size_t>(count));
    std::vector<int> const expected(data.begin(), data.begin() + count);
    right(MPI_File_read_ordered(file, found.data(), count * 4, MPI_BYTE, &status), "read_ordered");
    require(found == expected, "what was read");
    right(MPI_File_seek_shared(file, all + 4, MPI_SEEK_SET), "seek_shared");
    right(MPI_File_read_ordered_begin(file, found.data(), count * 4, MPI_BYTE), "begin");
    right(MPI_File_read_ordered_end(file, found.data(), &status), "end");
    require(found == expected, "what was read in two calls");
    int bytes = -1;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    require(bytes == count * 4, "the status");
    close(file);
    require(look("ordered", all, 1)[0] == word, "what was written between");
    meet();
}

// The same in a view that is not served: pointers count its etypes, whatever the view before it was. The bytes of a
// number are all alike, so that they may be converted or not.
void ordered_in_external32()
{
    auto file = open_file("external32");
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    char external32[] = "external32";
    if (MPI_File_set_view(file, 0, MPI_INT, MPI_INT, external32, MPI_INFO_NULL) != MPI_SUCCESS) {
        say("no external32 here");
        return close(file);
    }
    constexpr int count = 100;
    std::vector<int> data(count, 0x01010101 * (rank + 1));
    MPI_Status status;
    right(MPI_File_write_ordered_begin(file, data.data(), count, MPI_INT), "begin");
    right(MPI_File_write_ordered_end(file, data.data(), &status), "end");
    MPI_Offset pointer = -1;
    right(MPI_File_get_position_shared(file, &pointer), "get_position_shared");
    require(pointer == static_cast<MPI_Offset>(count) * ranks, "the shared pointer counts etypes");
    meet();
    for (int who = 0; who < ranks; ++who)
        require(look("external32", static_cast<MPI_Offset>(who) * count * 4, count) ==
                    std::vector<int>(count, 0x01010101 * (who + 1)),
                "the part of rank " + std::to_string(who));
    right(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "seek_shared");
    std::vector<int> found(count);
    right(MPI_File_read_ordered_begin(file, found.data(), count, MPI_INT), "begin");
    right(MPI_File_read_ordered_end(file, found.data(), &status), "end");
    require(found == data, "what was read");
    close(file);
}

// Threads with a file each. They are opened and closed in one order, without which ROMIO hangs.
void threads()
{
    constexpr int count = 3;
    MPI_Comm comms[count];
    MPI_File files[count];
    auto const name = [](int t) { return "threads" + std::to_string(t); };
    for (int t = 0; t < count; ++t) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
        files[t] = open_file(name(t), comms[t]);
    }
    std::vector<std::thread> all;
    for (auto* const file : files)
        all.emplace_back([file] {
            for (int turn = 0; turn < 5; ++turn) {
                std::vector<std::vector<int>> data;
                std::vector<MPI_Request> requests;
                for (int salt = 0; salt < 4; ++salt) {
                    data.push_back(mine(salt));
                    requests.push_back(start_write(file, data.back(), salt));
                }
                if (turn % 2 != 0) right(MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE), "waitall");
                for (auto& request : requests) right(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
            }
        });
    for (auto& thread : all) thread.join();
    for (int t = 0; t < count; ++t) {
        close(files[t]);
        MPI_Comm_free(&comms[t]);
        check(name(t), 4);
    }
}

// With settings for which the thread beside the program cannot open the file, a split access is done when it begins.
void own_settings()
{
    for (auto const* const hint : {"tapioca_aggrtier=dram", "tapioca_check=on"}) {
        std::string const text = hint;
        auto const name = text.substr(0, text.find('='));
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        MPI_Info_set(info, name.c_str(), text.substr(name.size() + 1).c_str());
        auto file = open_file(name, MPI_COMM_WORLD, info);
        MPI_Info_free(&info);
        auto const data = mine();
        right(MPI_File_write_at_all_begin(file, place(0), data.data(), each, MPI_INT), "begin");
        if (strict()) check(name, 1);
        MPI_Status status;
        right(MPI_File_write_at_all_end(file, data.data(), &status), "end");
        int count = -1;
        MPI_Get_count(&status, MPI_INT, &count);
        require(count == each, "the status counts " + std::to_string(count));
        close(file);
        check(name, 1);
    }
}

// MPI_Finalize with an access outstanding that one rank never began, and the file open. Comes last.
void unfinished()
{
    if (!strict()) return;
    static auto const data = mine();
    auto file = open_file("unfinished");
    if (rank != 0) (void)start_write(file, data, 0);
}

}  // namespace

int main(int argc, char** argv)
{
    std::map<std::string, std::function<void()>> const scenarios = {
        {"background", background}, {"progress", progress},
        {"orders", orders},         {"many", many},
        {"completion", completion}, {"unequal", unequal},
        {"errors", errors},         {"forbidden", forbidden},
        {"ordered", ordered},       {"ordered_in_external32", ordered_in_external32},
        {"threads", threads},       {"own_settings", own_settings},
        {"unfinished", unfinished}};
    int provided = 0;
    bool const threaded = argc > 1 && argv[1] == std::string("threads");
    MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; ++i) {
        auto const at = scenarios.find(argv[i]);
        require(at != scenarios.end(), std::string("no scenario ") + argv[i]);
        at->second();
        say(std::string(argv[i]) + ": done");
    }
    MPI_Finalize();
}
