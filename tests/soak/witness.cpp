#include "soak/witness.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace tapioca::soak {

namespace {

namespace fs = std::filesystem;

/// Names of this process's memory files.
int names_in_memory()
{
    auto const mine = "tapioca-" + std::to_string(::getpid()) + "-";
    int count = 0;
    for (auto const& entry : fs::directory_iterator("/dev/shm"))
        if (entry.path().filename().string().starts_with(mine)) ++count;
    return count;
}

}  // namespace

Witness::Witness(int argc, char** argv, std::string const& interface)
{
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s SEED PLACE TROUBLE DIRECTORY STAGE TIER\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
        std::abort();
    }
    way_ = way_of(std::strtoull(argv[1], nullptr, 10), ranks, interface, argv[2], argv[3]);
    script_ = script_of(way_, argv[5], argv[6]);
    directory_ = argv[4];
    std::ofstream(directory_ + "/pid." + std::to_string(rank_)) << ::getpid() << '\n';
    diary_ = ::open((directory_ + "/progress." + std::to_string(rank_)).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (rank_ != 0) return;
    std::string told;
    for (auto const& [name, value] : script_.settings) told += " " + name + "=" + value;
    for (auto const& file : script_.rounds.back().files)
        for (auto const& [name, value] : file.hints) told.append(" ").append(name).append("=").append(value);
    std::printf("settings%s\n", told.c_str());
    std::fflush(stdout);
}

Witness::~Witness()
{
    ::close(diary_);
}

std::string Witness::path(Place const& place) const
{
    return directory_ + "/" + file_name(place.round, place.file);
}

MPI_Info Witness::hints(Hints const& of_file) const
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (auto const* const hints : {&script_.settings, &of_file})
        for (auto const& [name, value] : *hints) MPI_Info_set(info, ("tapioca_" + name).c_str(), value.c_str());
    return info;
}

void Witness::note(char what, Place const& place, std::size_t number) const
{
    char line[64];
    auto const bytes = std::snprintf(line, sizeof line, "%c %zu %zu %zu\n", what, place.round, place.file, number);
    if (::write(diary_, line, static_cast<std::size_t>(bytes)) != bytes) std::abort();
}

void Witness::begin(Place const& place, std::size_t number)
{
    note('b', place, number);
    maybe_die(place, number);
}

void Witness::end(Place const& place, std::size_t number, bool good)
{
    note(good ? 'r' : 'f', place, number);
}

void Witness::maybe_die(Place const& place, std::size_t number) const
{
    auto const& moment = script_.moment;
    if (way_.trouble != Way::Trouble::kill || moment.rank != rank_ || moment.round != place.round ||
        moment.file != place.file || moment.call + 1 != number)
        return;
    if (moment.delay_us == 0) ::kill(::getpid(), SIGKILL);
    std::thread([delay = std::chrono::microseconds(moment.delay_us)] {
        std::this_thread::sleep_for(delay);
        ::kill(::getpid(), SIGKILL);
    }).detach();
}

void Witness::complain(Counts::Name name, std::string const& text)
{
    ++counts_.of[name];
    std::fprintf(stderr, "WRONG rank %d: %s\n", rank_, text.c_str());
}

void Witness::give_up(std::string const& text)
{
    complain(Counts::mismatches, text);
    MPI_Abort(MPI_COMM_WORLD, 4);
    std::abort();
}

/// So that the MPI library has all its connections.
void Witness::warm_up() const
{
    for (int const bytes : {1, 200'000}) {
        auto const all = static_cast<std::size_t>(bytes * way_.ranks);
        Bytes from(all), to(all);
        MPI_Alltoall(from.data(), bytes, MPI_BYTE, to.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

void Witness::compare(faults::Belongings const& before)
{
    MPI_Barrier(MPI_COMM_WORLD);
    faults::Belongings after;
    int names = 0;
    for (int wait = 0; wait < 100; ++wait) {  // threads that give memory back may take a moment
        after = faults::look();
        names = names_in_memory();
        if (faults::surplus(before, after).empty() && names == 0) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    auto const more = [&](Counts::Name name, std::int64_t then, std::int64_t now, char const* what) {
        if (now > then) complain(name, "left behind: " + std::to_string(now - then) + " " + what);
    };
    // What a process remembers, once: directories that it has searched for leftovers, what its thread shows to the
    // watchdog, what MPI's attributes hang on. A leak of each file or step is more than that.
    constexpr std::int64_t remembered = 12;
    more(Counts::memory, before.allocations + remembered, after.allocations, "allocations");
    more(Counts::descriptors, before.descriptors, after.descriptors, "descriptors");
    more(Counts::threads, before.threads, after.threads, "threads");
    more(Counts::shared_memory, before.shared_mappings, after.shared_mappings, "shared mappings");
    more(Counts::shared_memory, 0, names, "names in /dev/shm");
    MPI_Barrier(MPI_COMM_WORLD);
}

bool Witness::close()
{
    if (way_.trouble == Way::Trouble::kill && script_.moment.rank == rank_) ::pause();
    Counts all;
    MPI_Reduce(counts_.of, all.of, Counts::names, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    long good = 1;
    if (rank_ == 0) {
        constexpr char const* names[] = {"files",      "written", "read",        "faults",  "came_true",    "errors",
                                         "mismatches", "memory",  "descriptors", "threads", "shared_memory"};
        std::string line = "account";
        for (int i = 0; i < Counts::names; ++i) line += std::string(" ") + names[i] + "=" + std::to_string(all.of[i]);
        std::printf("%s\n", line.c_str());
        for (int i = Counts::mismatches; i < Counts::names; ++i) good = good && all.of[i] == 0;
    }
    MPI_Bcast(&good, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return good != 0;
}

}  // namespace tapioca::soak
