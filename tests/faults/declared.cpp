// The sweep over the declared interface: every way in which data can go to the file, and the stage.
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>

#include <tapioca/tapioca.hpp>

#include "declared/file_state.hpp"
#include "faults/on_nodes.hpp"
#include "faults/set_contents.hpp"
#include "faults/sweep.hpp"
#include "flush/log_flush.hpp"
#include "stage/find_logs.hpp"

namespace tapioca::faults {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t each = 4'000;  ///< bytes of a rank in a step
constexpr int steps = 2;

template <class Call>
Outcome outcome_of(Call call)
{
    try {
        call();
        return {};
    } catch (Error const& error) {
        return {false, error.what()};
    } catch (std::exception const& error) {
        return {false, std::string("not an Error: ") + error.what()};
    }
}

/// Byte `i` of a rank's data in a step, never 0.
std::byte byte_at(int step, int rank, std::int64_t i)
{
    auto const mixed = (static_cast<std::uint64_t>(i) * 131 + static_cast<std::uint64_t>(step) * 77 +
                        static_cast<std::uint64_t>(rank) * 29) *
                       0x9e3779b97f4a7c15u;
    return static_cast<std::byte>((mixed >> 56) | 1);
}

Bytes data_of(int step, int rank)
{
    Bytes data(each);
    for (std::int64_t i = 0; i < each; ++i) data[static_cast<std::size_t>(i)] = byte_at(step, rank, i);
    return data;
}

/// Blocks dealt to the ranks in turn, one at every `distance` bytes.
struct Deal {
    std::int64_t block;
    std::int64_t distance;
    [[nodiscard]] std::int64_t blocks() const { return each / block; }
    [[nodiscard]] std::int64_t span(int ranks) const { return blocks() * ranks * distance; }
    [[nodiscard]] std::vector<Extent> extents(int ranks, int rank) const
    {
        std::vector<Extent> list;
        for (std::int64_t i = 0; i < blocks(); ++i) list.push_back({(i * ranks + rank) * distance, block});
        return list;
    }
};

struct Way {
    Options options;
    Deal deal{500, 500};
    bool background = false;
    std::optional<Deal> written = {};  ///< what is read was dealt in another way
    bool drains = false;               ///< by a call, after the steps
};

/// The whole file, or nothing.
Bytes contents(std::string const& path, std::string& wrong)
{
    auto const text = whole_file(path, wrong);
    auto const* const begin = reinterpret_cast<std::byte const*>(text.data());
    return {begin, begin + text.size()};
}

/// On rank 0: steps that were acknowledged are in the file; of the others each byte is as it was or as it shall be.
std::string check_file(std::string const& path, Way const& way, int ranks, std::vector<bool> const& acknowledged)
{
    std::string unreadable;
    auto const file = contents(path, unreadable);
    if (!unreadable.empty()) return unreadable;
    for (int step = 0; step < steps; ++step)
        for (int rank = 0; rank < ranks; ++rank) {
            std::int64_t i = 0;
            for (auto const& extent : way.deal.extents(ranks, rank))
                for (std::int64_t at = 0; at < extent.length; ++at, ++i) {
                    auto const place = static_cast<std::size_t>(step * way.deal.span(ranks) + extent.offset + at);
                    auto const is = place < file.size() ? file[place] : std::byte{0};
                    auto const wanted = byte_at(step, rank, i);
                    if (is == wanted || (!acknowledged[static_cast<std::size_t>(step)] && is == std::byte{0})) continue;
                    return "byte " + std::to_string(place) + " of step " + std::to_string(step) +
                           (acknowledged[static_cast<std::size_t>(step)] ? ", acknowledged, is lost"
                                                                         : " is neither old nor new");
                }
        }
    return {};
}

/// Writes a file step by step; which steps were acknowledged.
std::vector<bool> write_file(Trial& trial, fs::path const& path, Way const& way, bool& closed)
{
    std::vector<bool> acknowledged(steps, false);
    std::optional<File> file;
    std::optional<Step> step;
    bool const staged = way.options.stage.has_value();
    if (!trial.call("open", [&] {
            return outcome_of([&] { file = File::open(trial.comm(), path, Mode::create, way.options); });
        }))
        return acknowledged;
    closed = false;
    Pattern pattern;
    pattern.add(way.deal.extents(trial.ranks(), trial.rank()));
    if (trial.call("declare", [&] { return outcome_of([&] { step = file->declare(pattern); }); })) {
        for (int s = 0; s < steps; ++s) {
            auto const data = data_of(s, trial.rank());
            auto const run = [&] {
                return outcome_of([&] {
                    step->rebase(s * way.deal.span(trial.ranks()));
                    step->write(0, data);
                    if (way.background) {
                        step->start();
                        (void)step->progress();
                        (void)step->wait();
                    } else {
                        (void)step->finish();
                    }
                });
            };
            acknowledged[static_cast<std::size_t>(s)] =
                staged ? trial.local_call("finish", run) : trial.call("finish", run);
        }
        if (way.drains) (void)trial.call("drain", [&] { return outcome_of([&] { file->drain(); }); });
        (void)trial.call("sync", [&] { return outcome_of([&] { file->sync(); }); });
        Bytes back(each);
        bool const read = trial.call("read", [&] {
            return outcome_of([&] {
                step->rebase(0);
                step->read(0, back);
                (void)step->finish();
            });
        });
        auto const received = read ? step->received(0) : 0;
        if (acknowledged[0] && read && received == static_cast<std::uint64_t>(each))
            trial.expect(back == data_of(0, trial.rank()), "what was read is not what was written");
        if (acknowledged[0] && read && received != static_cast<std::uint64_t>(each))
            trial.expect(fs::file_size(path) < static_cast<std::uintmax_t>(2 * way.deal.span(trial.ranks())),
                         "read too little of a whole file");
    }
    step.reset();
    closed = trial.call("close", [&] { return outcome_of([&] { file->close(); }); });
    return acknowledged;
}

/// Brings what is left in logs into the file, rank 0 all of them.
void recover(Trial& trial, std::string const& path)
{
    int there = trial.rank() == 0 && stage::has_marker(path) ? 1 : 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, trial.comm());
    if (!there) return;
    stage::LogContent content;
    std::vector<stage::Sought> logs;
    if (trial.rank() == 0) {
        auto const marker = stage::read_marker(path);
        trial.expect(marker.has_value(), "the marker cannot be read");
        if (marker) {
            content.after(marker->flushed);
            logs = stage::logs_in(*marker);
        }
        for (auto const& log : logs)
            if (auto const status = content.add(log.place, log.ranks); !status)
                trial.expect(log.beside, "a log cannot be read: " + status.error().text);
        auto const bad = content.verify();
        trial.expect(bad.empty() && content.damage().empty(), "a log is damaged");
    }
    MPI_Comm own = MPI_COMM_NULL;  // with settings of its own
    MPI_Comm_dup(trial.comm(), &own);
    bool const recovered = trial.call("recover", [&] {
        return outcome_of([&] {
            auto const file = declared::open_file(own, path, Mode::update, {}, MPI_INFO_NULL, {.recovering = true});
            if (auto const status = flush::replay(*file, file->account, content, {}); !status)
                throw Error(Errc::io, 0, 0, path, status.error().text);
            file->close();
        });
    });
    MPI_Comm_free(&own);
    trial.expect(recovered, "what is in the log cannot be recovered");
    if (trial.rank() != 0) return;
    (void)stage::remove_marker(path);
    for (auto const& log : logs) (void)stage::remove_log(log.place);
    if (!logs.empty()) stage::remove_directory(logs[0].place.directory);
}

void judge(Trial& trial, Way const& way, OnNodes const& nodes, std::vector<bool> const& acknowledged)
{
    trial.disarm();
    // The communicator may hold what the failure left: the next file must work on it.
    bool closed = true;
    auto const next = write_file(trial, trial.path("next"), way, closed);
    trial.expect(closed && std::count(next.begin(), next.end(), true) == steps, "the next file does not work");
    MPI_Barrier(trial.comm());
    auto const incomplete = trial.rank() == 0 ? complete_set(trial.path("file")) : std::string();
    trial.expect(incomplete.empty(), incomplete);
    MPI_Barrier(trial.comm());
    recover(trial, trial.path("file"));
    MPI_Barrier(trial.comm());
    for (auto const* const name : {"file", "next"}) nodes.drain(trial, trial.path(name));
    if (trial.rank() != 0) return;
    trial.expect(check_file(trial.path("next"), way, trial.ranks(), next).empty(), "the next file is wrong");
    auto const wrong = check_file(trial.path("file"), way, trial.ranks(), acknowledged);
    trial.expect(wrong.empty(), wrong);
}

/// Logs and buffers on an SSD lie in the trial's own directory.
Way placed(Trial const& trial, Way way)
{
    if (way.options.stage == "ssd") way.options.stage = "ssd:" + fs::absolute(trial.path("stage")).string();
    if (way.options.aggrtier == "ssd") way.options.aggrtier = "ssd:" + fs::absolute(trial.path("tier")).string();
    return way;
}

void write_and_judge(Trial& trial, Way const& way)
{
    OnNodes const nodes(trial, way.options.target.has_value());
    bool closed = true;
    auto const acknowledged = write_file(trial, trial.path("file"), way, closed);
    judge(trial, way, nodes, acknowledged);
}

/// The file of the first step.
Bytes image_of(Deal const& deal, int ranks)
{
    Bytes file(static_cast<std::size_t>(deal.span(ranks)));
    for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t i = 0;
        for (auto const& extent : deal.extents(ranks, rank))
            for (std::int64_t at = 0; at < extent.length; ++at)
                file[static_cast<std::size_t>(extent.offset + at)] = byte_at(0, rank, i++);
    }
    return file;
}

/// What a rank reads of it.
Bytes gathered_from(Bytes const& file, std::vector<Extent> const& extents)
{
    Bytes data;
    for (auto const& [offset, length] : extents)
        data.insert(data.end(), file.begin() + offset, file.begin() + offset + length);
    return data;
}

/// Makes the file that is to be read, without faults: all ranks write a set; or rank 0 writes a plain file.
void make_file(Trial const& trial, Way const& way, Deal const& deal)
{
    auto const path = trial.path("file");
    if (way.options.subfile || way.options.target) {
        auto file = File::open(trial.comm(), path, Mode::create, way.options);
        Pattern pattern;
        pattern.add(deal.extents(trial.ranks(), trial.rank()));
        {
            auto step = file.declare(pattern);
            auto const data = data_of(0, trial.rank());
            step.write(0, data);
            (void)step.finish();
        }
        file.close();
    } else if (trial.rank() == 0) {
        auto const file = image_of(deal, trial.ranks());
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<char const*>(file.data()), static_cast<std::streamsize>(file.size()));
    }
    MPI_Barrier(trial.comm());
}

/// Reads a file that is there.
void read_and_judge(Trial& trial, Way const& way)
{
    fs::path const path = trial.path("file");
    OnNodes const nodes(trial, way.options.target.has_value());
    auto const span = way.deal.span(trial.ranks());
    auto const deal = way.written.value_or(way.deal);
    make_file(trial, way, deal);
    auto const right = gathered_from(image_of(deal, trial.ranks()), way.deal.extents(trial.ranks(), trial.rank()));
    std::optional<File> file;
    std::optional<Step> step;
    if (trial.call("open", [&] {
            return outcome_of([&] { file = File::open(trial.comm(), path, Mode::read, way.options); });
        })) {
        Pattern pattern;
        pattern.add(way.deal.extents(trial.ranks(), trial.rank()));
        if (trial.call("declare", [&] { return outcome_of([&] { step = file->declare(pattern); }); }))
            for (int again = 0; again < 2; ++again) {
                Bytes back(each);
                bool const read = trial.call("read", [&] {
                    return outcome_of([&] {
                        step->read(0, back);
                        if (way.background) {
                            step->start();
                            (void)step->wait();
                        } else {
                            (void)step->finish();
                        }
                    });
                });
                if (read && step->received(0) == static_cast<std::uint64_t>(each))
                    trial.expect(back == right, "what was read is wrong");
                if (read && step->received(0) != static_cast<std::uint64_t>(each))
                    trial.expect(fs::file_size(path) < static_cast<std::uintmax_t>(span),
                                 "read too little of a whole file");
            }
        step.reset();
        (void)trial.call("close", [&] { return outcome_of([&] { file->close(); }); });
    }
    file.reset();
    trial.disarm();
    bool closed = true;
    auto const next = write_file(trial, trial.path("next"), way, closed);
    trial.expect(closed && std::count(next.begin(), next.end(), true) == steps, "the next file does not work");
    for (auto const* const name : {"file", "next"}) nodes.drain(trial, trial.path(name));
    if (trial.rank() == 0)
        trial.expect(check_file(trial.path("next"), way, trial.ranks(), next).empty(), "the next file is wrong");
}

Options gathered()
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = 4096;
    options.nbaggr = 2;
    return options;
}

Options nodes(char const* transport)
{
    auto options = gathered();
    options.ranks_per_node = 2;
    options.transport = transport;
    return options;
}

Options staged(StageMapping mapping, char const* tier = "ssd")
{
    auto options = gathered();
    options.stage = tier;
    options.stage_mapping = mapping;
    return options;
}

/// On the nodes' tier, which has room for one step and a half of a node.
Options on_tier(TargetDrain drain)
{
    auto options = nodes("p2p");
    options.target = own_tier;
    options.target_drain = drain;
    options.target_through = 0;
    options.target_size = each * ranks_of_a_node * 3 / 2;
    return options;
}

std::vector<Scenario> scenarios()
{
    auto const with = [](Options options, auto change) {
        change(options);
        return options;
    };
    Deal const holes{50, 90};
    std::vector<std::pair<std::string, Way>> const ways = {
        {"dense", {gathered()}},
        {"holes", {gathered(), holes}},
        {"background", {gathered(), {500, 500}, true}},
        {"direct", {with(gathered(), [](Options& o) { o.direct = Direct::always; })}},
        {"tier", {with(gathered(), [](Options& o) { o.aggrtier = "ssd"; })}},
        {"nodes-p2p", {nodes("p2p")}},
        {"nodes-p2p-holes", {nodes("p2p"), holes, true}},
        {"nodes-rma", {nodes("rma")}},
    };
    auto const subfiled = [&](Options options, char const* layout) {
        options.subfile = layout;
        return options;
    };
    std::vector<std::pair<std::string, Way>> const sets = {
        {"subfile", {subfiled(gathered(), "files:2")}},
        {"subfile-holes", {subfiled(gathered(), "files:2"), holes, true}},
        {"subfile-others", {subfiled(gathered(), "files:3"), {250, 250}, false, Deal{500, 500}}},
        {"subfile-nodes", {subfiled(nodes("p2p"), "node")}},
        {"target-nodes", {on_tier(TargetDrain::never)}},
        {"target-nodes-others", {on_tier(TargetDrain::never), {250, 250}, false, Deal{500, 500}}},
        {"target-nodes-small", {with(on_tier(TargetDrain::never), [](Options& o) { o.target_through.reset(); })}},
        {"target-nodes-close", {on_tier(TargetDrain::close), holes}},
        {"target-nodes-called", {on_tier(TargetDrain::never), {500, 500}, false, {}, true}},
        {"target-nodes-drained", {on_tier(TargetDrain::background)}},
    };
    std::vector<std::pair<std::string, Way>> const logs = {
        {"staged-process", {staged(StageMapping::process)}},
        {"staged-node", {staged(StageMapping::node), holes}},
        {"staged-memory", {staged(StageMapping::process, "dram")}},
        {"staged-sync", {with(staged(StageMapping::process), [](Options& o) { o.stage_sync = StageSync::write; })}},
        {"staged-drain", {with(staged(StageMapping::process), [](Options& o) { o.stage_drain = "on"; })}},
        {"staged-full", {with(staged(StageMapping::process), [](Options& o) { o.stage_size = 4096; })}},
        {"staged-subfile", {subfiled(staged(StageMapping::process), "files:2")}},
        {"staged-nodes", {with(staged(StageMapping::node), [](Options& o) { o.ranks_per_node = 2; })}},
    };
    std::vector<Scenario> all;
    auto direct_ways = ways;
    direct_ways.insert(direct_ways.end(), sets.begin(), sets.end());
    for (auto const& [name, way] : direct_ways) {
        all.push_back(
            {"write-" + name, "declared", [way = way](Trial& trial) { write_and_judge(trial, placed(trial, way)); }});
        all.push_back({"read-" + name, "declared",
                       [way = way](Trial& trial) { read_and_judge(trial, placed(trial, way)); },
                       way.options.target.has_value()});  // a catalogue that others cut short is damaged for good
    }
    for (auto const& [name, way] : logs)
        all.push_back({name, "staged", [way = way](Trial& trial) { write_and_judge(trial, placed(trial, way)); }});
    for (auto& scenario : all) scenario.keeps = scenario.name.find("-nodes") != std::string::npos;
    return all;
}

}  // namespace
}  // namespace tapioca::faults

int main(int argc, char** argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    auto const status = tapioca::faults::sweep(argc, argv, tapioca::faults::scenarios());
    MPI_Finalize();
    return status;
}
