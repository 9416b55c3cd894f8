// Files that exist before, after and during MPI, and ranks that die or never arrive: one scenario per run, named on the
// command line. It does not use GoogleTest, because MPI is initialised and finalised in between.
#include <mpi.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <tapioca/tapioca.h>
#include <tapioca/tapioca.hpp>

extern "C" {  // what the Fortran module calls
int tapioca_fortran_open(MPI_Fint comm, char const* path, int mode, MPI_Fint info, TAPIOCA_File* file);
}

namespace {

using namespace tapioca;

constexpr std::int64_t each = 50'000;

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

void require(bool condition, char const* what)
{
    if (condition) return;
    std::fprintf(stderr, "FAILED: %s\n", what);
    std::abort();
}

Errc code_of(std::function<void()> const& call)
{
    try {
        call();
    } catch (Error const& error) {
        std::printf("%s\n", error.what());
        return error.code();
    }
    return Errc::ok;
}

Options small_buffers()
{
    Options options;
    options.buffersize = 4096;
    options.direct = Direct::never;
    return options;
}

Pattern blocks(MPI_Comm comm)
{
    Pattern pattern;
    pattern.add({{rank_in(comm) * each, each}});
    return pattern;
}

std::vector<char> letters(MPI_Comm comm)
{
    return std::vector<char>(each, static_cast<char>('a' + rank_in(comm)));
}

void require_contents(std::string const& path, int ranks)
{
    std::ifstream in(path, std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(in)), {});
    require(text.size() == static_cast<std::size_t>(ranks) * each, "the file's size");
    for (std::size_t i = 0; i < text.size(); ++i)
        require(text[i] == static_cast<char>('a' + i / each), "the file's contents");
}

void write_and_read(MPI_Comm comm, std::string const& path)
{
    auto file = File::open(comm, path, Mode::create, small_buffers());
    auto step = file.declare(blocks(comm));
    auto data = letters(comm);
    step.write(0, data);
    step.finish();
    std::fill(data.begin(), data.end(), '?');
    step.read(0, data);
    step.finish();
    require(data == letters(comm), "what was read");
    file.close();
}

void before_init()
{
    require(code_of([] { (void)File::open(MPI_COMM_WORLD, "early", Mode::create); }) == Errc::invalid_state,
            "open before MPI_Init");
    MPI_Init(nullptr, nullptr);
    write_and_read(MPI_COMM_WORLD, "early");
    MPI_Finalize();
}

void after_finalize()
{
    MPI_Init(nullptr, nullptr);
    write_and_read(MPI_COMM_WORLD, "late");
    MPI_Finalize();
    require(code_of([] { (void)File::open(MPI_COMM_WORLD, "late", Mode::read); }) == Errc::invalid_state,
            "open after MPI_Finalize");
}

/// The C face returns codes where MPI would end the program.
void c_around_mpi()
{
    int const bad_time = TAPIOCA_ERR_INVALID_STATE;
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    auto const open_it = [&] { return TAPIOCA_Open(MPI_COMM_WORLD, "c", TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file); };
    auto const open_fortran = [&] { return tapioca_fortran_open(0, "c", TAPIOCA_MODE_CREATE, 0, &file); };
    require(open_it() == bad_time, "TAPIOCA_Open before MPI_Init");
    require(open_fortran() == bad_time, "tapioca_open before MPI_Init");
    MPI_Init(nullptr, nullptr);
    require(open_it() == TAPIOCA_SUCCESS, "TAPIOCA_Open");
    require(TAPIOCA_Init(file, nullptr, nullptr, nullptr, 0) == TAPIOCA_SUCCESS, "TAPIOCA_Init");
    MPI_Finalize();
    int64_t size = 0;
    require(TAPIOCA_Wait(file, nullptr) == bad_time, "TAPIOCA_Wait after MPI_Finalize");
    require(TAPIOCA_Size(file, &size) == bad_time, "TAPIOCA_Size after MPI_Finalize");
    require(TAPIOCA_Finalize(file) == bad_time, "TAPIOCA_Finalize after MPI_Finalize");
    require(TAPIOCA_Close(&file) == bad_time && file, "TAPIOCA_Close after MPI_Finalize");
    require(TAPIOCA_Release(&file) == TAPIOCA_SUCCESS && !file, "TAPIOCA_Release after MPI_Finalize");
    require(open_it() == bad_time && open_fortran() == bad_time && !file, "TAPIOCA_Open after MPI_Finalize");
}

void outlives_mpi()
{
    MPI_Init(nullptr, nullptr);
    auto const ranks = size_of(MPI_COMM_WORLD);
    auto const rank = rank_in(MPI_COMM_WORLD);
    {
        auto file = File::open(MPI_COMM_WORLD, "outlives", Mode::create, small_buffers());
        auto step = file.declare(blocks(MPI_COMM_WORLD));
        auto const data = letters(MPI_COMM_WORLD);
        step.write(0, data);
        step.start();  // now its I/O thread exists, too
        step.wait();
        MPI_Finalize();
        require(code_of([&] { file.close(); }) == Errc::invalid_state, "close after MPI_Finalize");
        require(code_of([&] { step.finish(); }) == Errc::invalid_state, "finish after MPI_Finalize");
        require(code_of([&] { (void)file.size(); }) == Errc::invalid_state, "size after MPI_Finalize");
    }
    if (rank == 0) require_contents("outlives", ranks);
}

std::size_t entries(char const* directory)
{
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator{}));
}

std::size_t watchdogs()
{
    std::size_t count = 0;
    for (auto const& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        count += name == "tapioca-watch" ? 1 : 0;
    }
    return count;
}

/// One thread more as long as a file or its communicator is there, and only where somebody may be waited for.
void has_one_watchdog()
{
    MPI_Init(nullptr, nullptr);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    {  // what MPI starts by itself is there after this
        auto options = small_buffers();
        options.timeout = 0;
        File::open(comm, "watched", Mode::create, options).close();
    }
    auto const before = entries("/proc/self/task");
    File::open(MPI_COMM_SELF, "alone" + std::to_string(rank_in(comm)), Mode::create, small_buffers()).close();
    require(entries("/proc/self/task") == before, "a thread for a rank that is alone");
    auto file = File::open(comm, "watched", Mode::create, small_buffers());
    require(entries("/proc/self/task") == before + 1 && watchdogs() == 1, "no watchdog");
    auto other = File::open(MPI_COMM_WORLD, "watched as well", Mode::create, small_buffers());
    auto step = file.declare(blocks(comm));
    auto const data = letters(comm);
    for (int i = 0; i < 3; ++i) {
        step.write(0, data);
        step.finish();
    }
    require(entries("/proc/self/task") == before + 1, "more than one watchdog");
    file.close();
    MPI_Finalize();  // with a file open
    require(watchdogs() == 0, "the watchdog outlives MPI");
}

void never_closed()
{
    MPI_Init(nullptr, nullptr);
    {
        auto file = File::open(MPI_COMM_WORLD, "unclosed", Mode::create, small_buffers());
        auto step = file.declare(blocks(MPI_COMM_WORLD));
        auto const data = letters(MPI_COMM_WORLD);
        step.write(0, data);
        step.finish();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0) require_contents("unclosed", size_of(MPI_COMM_WORLD));
    MPI_Finalize();
}

void freed_communicator()
{
    MPI_Init(nullptr, nullptr);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    auto file = File::open(comm, "freed", Mode::create, small_buffers());
    auto step = file.declare(blocks(comm));
    auto data = letters(comm);
    MPI_Comm_free(&comm);
    step.write(0, data);
    step.finish();
    std::fill(data.begin(), data.end(), '?');
    auto again = file.declare(blocks(MPI_COMM_WORLD));
    again.read(0, data);
    again.finish();
    require(data == letters(MPI_COMM_WORLD), "what was read");
    require(file.size() == static_cast<std::uint64_t>(size_of(MPI_COMM_WORLD)) * each, "size");
    file.close();
    MPI_Finalize();
}

void several_communicators()
{
    MPI_Init(nullptr, nullptr);
    auto const rank = rank_in(MPI_COMM_WORLD);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // in reverse order
    struct Open {
        MPI_Comm comm;
        std::string path;
        File file;
        Step step;
        std::vector<char> data;
    };
    std::vector<std::unique_ptr<Open>> all;
    for (auto const& [comm, path] :
         std::initializer_list<std::pair<MPI_Comm, std::string>>{{MPI_COMM_WORLD, "world"},
                                                                 {half, "half" + std::to_string(rank % 2)},
                                                                 {MPI_COMM_SELF, "self" + std::to_string(rank)}}) {
        auto file = File::open(comm, path, Mode::create, small_buffers());
        auto step = file.declare(blocks(comm));
        all.push_back(std::make_unique<Open>(Open{comm, path, std::move(file), std::move(step), letters(comm)}));
    }
    for (auto& open : all) open->step.write(0, open->data);
    for (auto& open : all) open->step.start();  // under way on three communicators at once
    for (auto& open : all) open->step.wait();
    for (auto& open : all) {
        open->file.close();
        MPI_Barrier(open->comm);
        require_contents(open->path, size_of(open->comm));
    }
    all.clear();
    MPI_Comm_free(&half);
    MPI_Finalize();
}

void thread_multiple()
{
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    write_and_read(MPI_COMM_SELF, "self" + std::to_string(rank_in(MPI_COMM_WORLD)));
    write_and_read(MPI_COMM_WORLD, "multiple");
    MPI_Finalize();  // drops what is kept with the communicators, from MPI's own callbacks
}

void leaves_nothing_behind()
{
    MPI_Init(nullptr, nullptr);
    auto const use_once = [] {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        write_and_read(comm, "again");
        MPI_Comm_free(&comm);
    };
    for (int i = 0; i < 5; ++i) use_once();
    auto const files = entries("/proc/self/fd");
    auto const threads = entries("/proc/self/task");
    for (int i = 0; i < 60; ++i) use_once();
    require(entries("/proc/self/fd") <= files, "descriptors stay open");
    require(entries("/proc/self/task") <= threads, "threads stay");
    for (auto const& entry : std::filesystem::directory_iterator("/dev/shm"))
        require(!entry.path().filename().string().starts_with("tapioca-" + std::to_string(::getpid()) + "-"),
                "a shared memory file stays");
    MPI_Finalize();
}

/// Destroyed when a process exits, a child of this one as well.
struct Lasting {
    std::optional<File> file, staged;
    std::optional<Step> step, log;
};
Lasting& lasting()
{
    static Lasting all;
    return all;
}

/// Runs `act` in a child of this process, which must come to its end.
void in_a_child(std::function<void()> const& act)
{
    std::fflush(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        act();
        std::exit(0);
    }
    int status = -1;
    for (int tenths = 0; ::waitpid(child, &status, WNOHANG) == 0; ++tenths) {
        if (tenths == 200) ::kill(child, SIGKILL);
        ::usleep(100'000);
    }
    require(status == 0, "a child that exits");
}

/// What a child does with files of its parent is an error, and what it destroys stays as it is.
void forks()
{
    MPI_Init(nullptr, nullptr);
    auto const ranks = size_of(MPI_COMM_WORLD);
    auto& all = lasting();
    auto staged = small_buffers();
    staged.stage = "dram";
    staged.stage_drain = "on";
    auto const data = letters(MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0) (void)std::remove("forks.staged.tapioca");  // of a run that failed
    all.file = File::open(MPI_COMM_WORLD, "forks", Mode::create, small_buffers());
    all.staged = File::open(MPI_COMM_WORLD, "forks.staged", Mode::create, staged);
    all.step = all.file->declare(blocks(MPI_COMM_WORLD));
    all.log = all.staged->declare(blocks(MPI_COMM_WORLD));
    all.log->write(0, data);
    all.log->start();
    all.step->write(0, data);
    all.step->start();
    in_a_child([] {});
    in_a_child([&] {
        require(code_of([&] { (void)all.step->progress(); }) == Errc::invalid_state, "progress in a child");
        require(code_of([&] { (void)all.step->wait(); }) == Errc::invalid_state, "wait in a child");
        require(code_of([&] { all.file->close(); }) == Errc::invalid_state, "close in a child");
        require(code_of([&] { all.staged->flush(); }) == Errc::invalid_state, "flush in a child");
        require(code_of([&] { (void)all.log->progress(); }) == Errc::invalid_state, "progress of a log in a child");
        require(code_of([&] { (void)all.log->wait(); }) == Errc::invalid_state, "wait for a log in a child");
        require(code_of([&] { all.log->finish(); }) == Errc::invalid_state, "finish in a child");
        require(code_of([&] { (void)File::open(MPI_COMM_WORLD, "child", Mode::create); }) == Errc::invalid_state,
                "open in a child");
        all = {};
    });
    all.log->wait();
    all.step->wait();
    in_a_child([&] { all = {}; });
    all.file->close();
    all.staged->close();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0) require_contents("forks", ranks);
    if (rank_in(MPI_COMM_WORLD) == 0) require_contents("forks.staged", ranks);
    all = {};
    MPI_Finalize();
}

/// A step that nobody waits for, which is destroyed when MPI is no more.
void started_and_left()
{
    MPI_Init(nullptr, nullptr);
    static auto const data = letters(MPI_COMM_WORLD);
    auto& all = lasting();
    all.file = File::open(MPI_COMM_WORLD, "left", Mode::create, small_buffers());
    all.step = all.file->declare(blocks(MPI_COMM_WORLD));
    all.step->write(0, data);
    all.step->start();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/// Writes a file that is never closed. Rank 0 says so, in one line, and how to get `what` is left; others say nothing.
void require_told(std::string const& name, Options const& options, std::string const& what)
{
    bool const first = rank_in(MPI_COMM_WORLD) == 0;
    auto const said = "said" + std::to_string(rank_in(MPI_COMM_WORLD));
    require(std::freopen(said.c_str(), "w", stderr), "the standard error into a file");
    {
        auto file = File::open(MPI_COMM_WORLD, name, Mode::create, options);
        auto step = file.declare(blocks(MPI_COMM_WORLD));
        auto const data = letters(MPI_COMM_WORLD);
        step.write(0, data);
        step.finish();
    }
    std::fflush(stderr);
    std::ifstream in(said);
    std::string const all((std::istreambuf_iterator<char>(in)), {});
    bool const told = all.find(name + ": was never closed: ") != std::string::npos &&
                      all.find("`tapioca " + what + " recover " + name + "`") != std::string::npos;
    bool const sound = first ? told && std::count(all.begin(), all.end(), '\n') == 1 : all.empty();
    if (!sound) std::printf("FAILED: said: \"%s\"\n", all.c_str());
    if (!sound) std::abort();
}

/// The log stays.
void never_closed_staged()
{
    MPI_Init(nullptr, nullptr);
    bool const first = rank_in(MPI_COMM_WORLD) == 0;
    if (first) std::filesystem::remove_all("unclosed.staged.tapioca");  // of a run before
    if (first) std::filesystem::remove_all("log");
    if (first) std::filesystem::create_directory("log");
    MPI_Barrier(MPI_COMM_WORLD);
    auto options = small_buffers();
    options.stage = "ssd:" + std::filesystem::absolute("log").string();
    require_told("unclosed.staged", options, "log");
    MPI_Finalize();
}

/// The set is not complete.
void never_closed_subfiled()
{
    MPI_Init(nullptr, nullptr);
    if (rank_in(MPI_COMM_WORLD) == 0) {  // of a run before
        std::filesystem::remove_all("unclosed.set");
        std::filesystem::remove_all("unclosed.set.subfiles");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    auto options = small_buffers();
    options.subfile = "files:2";
    require_told("unclosed.set", options, "subfile");
    MPI_Finalize();
}

/// Starts a step; then the last rank is gone. `how` is what it does instead of waiting.
void lost_rank(std::function<void()> const& how)
{
    MPI_Init(nullptr, nullptr);
    auto file = File::open(MPI_COMM_WORLD, "lost", Mode::create, small_buffers());
    auto step = file.declare(blocks(MPI_COMM_WORLD));
    auto const data = letters(MPI_COMM_WORLD);
    step.write(0, data);
    step.finish();
    if (rank_in(MPI_COMM_WORLD) == size_of(MPI_COMM_WORLD) - 1) how();
    step.write(0, data);
    step.finish();
    file.close();
    MPI_Finalize();
}

/// The same where rank 0, which aggregates, is the one.
void lost_aggregator(std::function<void()> const& how)
{
    MPI_Init(nullptr, nullptr);
    auto file = File::open(MPI_COMM_WORLD, "lost", Mode::create, small_buffers());
    auto step = file.declare(blocks(MPI_COMM_WORLD));
    auto const data = letters(MPI_COMM_WORLD);
    step.write(0, data);
    if (rank_in(MPI_COMM_WORLD) != 0) step.start();
    if (rank_in(MPI_COMM_WORLD) == 0) how();
    step.wait();
    MPI_Finalize();
}

void die()
{
    std::printf("a rank dies on purpose\n");
    std::fflush(stdout);
    ::usleep(100'000);
    ::kill(::getpid(), SIGKILL);
}

void sleep_on()
{
    ::sleep(300);
}

std::map<std::string, std::function<void()>> const scenarios = {
    {"before_init", before_init},
    {"after_finalize", after_finalize},
    {"c_around_mpi", c_around_mpi},
    {"outlives_mpi", outlives_mpi},
    {"has_one_watchdog", has_one_watchdog},
    {"never_closed", never_closed},
    {"never_closed_staged", never_closed_staged},
    {"never_closed_subfiled", never_closed_subfiled},
    {"started_and_left", started_and_left},
    {"freed_communicator", freed_communicator},
    {"several_communicators", several_communicators},
    {"thread_multiple", thread_multiple},
    {"leaves_nothing_behind", leaves_nothing_behind},
    {"forks", forks},
    {"killed_rank", [] { lost_rank(die); }},
    {"killed_aggregator", [] { lost_aggregator(die); }},
    {"missing_rank", [] { lost_rank(sleep_on); }},
    {"missing_aggregator", [] { lost_aggregator(sleep_on); }},
};

}  // namespace

int main(int argc, char** argv)
{
    auto const found = scenarios.find(argc > 1 ? argv[1] : "");
    if (found == scenarios.end()) {
        for (auto const& [name, run] : scenarios) std::printf("%s\n", name.c_str());
        return 2;
    }
    found->second();
    return 0;
}
