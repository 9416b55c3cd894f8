// crash_check SEED RANKS TARGET BEFORE DIRECTORY: checks that the file is what the calls that returned have written,
// over its contents BEFORE. If a later call had begun and not returned, its bytes may be there or not. If the machine
// stopped, the same holds for everything that docs/stage.md does not promise to survive. Prints the number of bytes
// compared. If nothing of the file is promised, not even that there is one, it prints "0 0"; for the TARGET - it only
// says so by its status: 0 if it is so, otherwise 3.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>

#include "crash/scenario.hpp"
#include "support/file_model.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::test;

Progress progress_of(std::string const& directory, std::size_t rank)
{
    Progress progress;
    std::ifstream in(directory + "/progress." + std::to_string(rank));
    char what = 0;
    int call = 0;
    while (in >> what >> call) (what == 'b' ? progress.begun : progress.returned) = call;
    return progress;
}

/// For each rank, the last call up to which its writes are promised to be in the file.
std::vector<int> promised(Scenario const& scenario, std::vector<Progress> const& progress, CrashKind kind)
{
    std::vector<int> result;
    auto const call = [&](int number) { return scenario.calls[static_cast<std::size_t>(number) - 1]; };
    auto const& sync = scenario.options.stage_sync;
    int synced = 0;
    for (auto const& one : progress) {
        auto last = one.returned;
        auto const counts = [&](CrashCall const& c) {
            bool const syncs = c.kind == CrashCall::Kind::sync || (c.kind == CrashCall::Kind::flush && kind.dropin);
            return syncs || (sync == StageSync::collective && c.kind == CrashCall::Kind::write && !c.alone);
        };
        if (kind.loss && sync != StageSync::write)
            while (last > 0 && !counts(call(last))) --last;
        result.push_back(last);
        synced = std::max(synced, last);
    }
    if (kind.loss && sync == StageSync::sync)  // whichever rank it returned on, it was for all
        result.assign(progress.size(), synced);
    return result;
}

/// What was written to each byte of the file.
using History = std::unordered_map<std::size_t, Bytes>;

/// A chunk of a set whose journal is left after the machine stopped: its data may be what the place had before it.
void add_chunk(FileModel& model, History& history, std::int64_t base, Declared const& variable, Bytes const& data,
               bool certain)
{
    FileModel::each(base, variable, data, [&](std::size_t at, std::byte value) {
        auto& earlier = history[at];
        if (!certain) model.add(at, std::byte{});
        for (auto const one : earlier)
            if (!certain) model.add(at, one);
        earlier.push_back(value);
    });
}

/// Adds the writes of one call.
void add_call(FileModel& model, History& history, Scenario const& scenario, std::uint64_t seed, std::size_t number,
              std::vector<Progress> const& progress, std::vector<int> const& certain, CrashKind kind)
{
    auto const& call = scenario.calls[number - 1];
    if (call.kind != CrashCall::Kind::write) return;
    for (std::size_t rank = 0; rank < progress.size(); ++rank) {
        if (progress[rank].begun < static_cast<int>(number)) continue;
        bool const is_certain = certain[rank] >= static_cast<int>(number);
        auto const data = written_by(scenario, seed, number, rank);
        for (std::size_t v = 0; v < data.size(); ++v) {
            auto const& variable = scenario.jobs[call.job][rank][v];
            is_certain ? model.write(call.base, variable, data[v]) : model.begin(call.base, variable, data[v]);
            if (kind.loss && kind.subfiled) add_chunk(model, history, call.base, variable, data[v], is_certain);
        }
    }
}

int fail(std::uint64_t seed, std::vector<Progress> const& progress, std::int64_t at, Bytes const& file)
{
    std::printf("seed %llu: byte %lld of %zu cannot be what it is;", static_cast<unsigned long long>(seed),
                static_cast<long long>(at), file.size());
    for (auto const& one : progress) std::printf(" %d/%d", one.returned, one.begun);
    std::puts(" calls returned and begun");
    return 1;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 6) return 2;
    auto const seed = std::strtoull(argv[1], nullptr, 10);
    auto const ranks = static_cast<std::size_t>(std::atoi(argv[2]));
    auto const file = contents(argv[3]);
    auto const before = contents(argv[4]);
    std::vector<Progress> progress;
    bool opened = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        progress.push_back(progress_of(argv[5], rank));
        opened = opened || progress.back().returned >= 0;
    }
    auto const kind = crash_kind();
    auto const scenario = scenario_of(seed, static_cast<int>(ranks), "", kind);
    auto const certain = promised(scenario, progress, kind);
    bool const anew = scenario.create || before.empty();
    bool const nothing = kind.loss && kind.subfiled && anew && *std::max_element(certain.begin(), certain.end()) < 1;
    if (std::string(argv[3]) == "-") return nothing ? 0 : 3;
    if (!opened && scenario.create && file.empty()) return std::puts("0 0"), 0;  // killed while opening
    if (nothing) return std::puts("0 0"), 0;
    History history;
    FileModel model(opened && scenario.create ? Bytes() : before);
    for (std::size_t number = 1; number <= scenario.calls.size(); ++number)
        add_call(model, history, scenario, seed, number, progress, certain, kind);
    auto const wrong = model.first_wrong(file);
    if (wrong >= 0) return fail(seed, progress, wrong, file);
    std::printf("%zu %zu\n", file.size(), model.open_bytes());
    return 0;
}
