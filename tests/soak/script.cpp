#include "soak/script.hpp"

namespace tapioca::soak {

namespace {

using test::Random;

/// A byte of the data of a call.
std::byte byte_of(std::uint64_t salt, std::uint64_t index)
{
    auto x = salt * 0x9e3779b97f4a7c15U + index * 0xd1b54a32d192ed03U + 1;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    return static_cast<std::byte>(x >> 56);
}

class Writer {
public:
    Writer(Way const& way, std::string const& stage, std::string const& tier)
        : way_(way), stage_(stage), tier_(tier), random_(way.seed * 0x9e3779b97f4a7c15U + 0x50a4)
    {
    }

    Script write()
    {
        buffers();
        nodes();
        if (random_.chance(way_.trouble == Way::Trouble::kill ? 70 : 35)) log();
        rounds();
        subfiles();
        targets();
        auto& moment = script_.moment;
        moment.round = script_.rounds.size() - 1;
        auto const& files = script_.rounds.back().files;
        // Behind a file with a fault there is another that must work.
        moment.file = way_.trouble == Way::Trouble::fault ? 0 : index(files.size());
        moment.call = index(files[moment.file].calls.size());
        moment.rank = static_cast<int>(index(static_cast<std::size_t>(way_.ranks)));
        moment.delay_us = random_.chance(50) ? 0 : static_cast<int>(random_.pick(0, 3000));
        script_.luck = static_cast<std::uint64_t>(random_.pick(0, 1'000'000'000));
        return std::move(script_);
    }

private:
    std::size_t index(std::size_t size)
    {
        return static_cast<std::size_t>(random_.pick(0, static_cast<std::int64_t>(size) - 1));
    }
    void set(char const* name, std::string const& value) { script_.settings.emplace_back(name, value); }
    void set(char const* name, std::int64_t value) { set(name, std::to_string(value)); }

    void buffers()
    {
        if (random_.chance(60)) set("buffersize", random_.one_of<std::int64_t>({1, 4096, 16384, 65536, 1 << 20}));
        if (random_.chance(30)) set("buffers", random_.pick(1, 4));
        if (random_.chance(50)) set("nbaggr", random_.pick(1, way_.ranks));
        if (random_.chance(10)) set("nbaggr_read", random_.pick(1, way_.ranks));
        if (random_.chance(50)) set("direct", random_.one_of<std::string>({"never", "never", "always"}));
        if (random_.chance(15)) set("strategy", random_.one_of<std::string>({"SHORTEST_PATH", "RANK_ORDER"}));
        if (random_.chance(15)) set("check", "1");
        if (random_.chance(10)) set("memory", random_.one_of<std::string>({"16M", "64M"}));
        auto const tier = random_.pick(1, 100);
        if (tier <= 20) set("aggrtier", "ssd:" + tier_);
        if (tier > 90) set("aggrtier", "dram");
    }

    void nodes()
    {
        auto const per_node = random_.pick(1, 3);
        bool const pretended = random_.chance(45);
        if (pretended && !way_.box) set("ranks_per_node", per_node);
        if (random_.chance(30)) set("transport", "rma");
    }

    void log()
    {
        script_.staged = true;
        bool const memory = random_.chance(40);
        // The memory of hosts in a box is gone with them.
        set("stage", memory && !way_.box ? "dram" : "ssd:" + stage_);
        set("stage_mapping", random_.one_of<std::string>({"process", "node"}));
        if (random_.chance(40)) set("stage_sync", random_.one_of<std::string>({"write", "collective"}));
        if (random_.chance(30)) set("stage_size", random_.one_of<std::int64_t>({1, 4096, 1'200'000}));
        if (random_.chance(35)) set("stage_drain", random_.one_of<std::string>({"on", "100M"}));
    }

    void rounds()
    {
        auto const troubled = way_.trouble != Way::Trouble::none;
        auto const count = troubled ? 2 : random_.pick(2, 3);
        for (std::int64_t i = 0; i < count; ++i) {
            Round round;
            auto const files = way_.trouble == Way::Trouble::fault ? 2 : random_.pick(1, 3);
            for (std::int64_t f = 0; f < files; ++f) round.files.push_back(file());
            round.at_once = way_.trouble != Way::Trouble::fault && random_.chance(25);
            script_.rounds.push_back(std::move(round));
        }
        // The drop-in library keeps plans and memory for the next file of the same shape.
        if (way_.dropin && !troubled) script_.rounds.push_back(script_.rounds.back());
    }

    /// Some files are sets of subfiles, and then all of the warm-up: what is kept for the groups is there from then on.
    /// The other choices do not depend on these.
    void subfiles()
    {
        Random random(way_.seed * 0x9e3779b97f4a7c15U + 0x5e7);
        if (!random.chance(45)) return;
        give_hints(random,
                   {{"subfile", random.one_of<std::string>({"node", "nodes:2", "files:2", "files:2", "files:3"})}});
    }

    /// The data of some files stays on the nodes, or is drained when they are closed, or meanwhile. What hosts in a box
    /// have is out of reach afterwards, so it must be drained.
    void targets()
    {
        Random random(way_.seed * 0x9e3779b97f4a7c15U + 0x7a6);
        bool const drained = way_.box;
        if (!random.chance(35) || (drained && way_.trouble != Way::Trouble::none)) return;
        Hints hints = {{"target", "ssd:" + tier_}};
        auto const drain = random.one_of<std::string>({"never", "close", "background", "background"});
        hints.emplace_back("target_drain", drained && drain == "never" ? "close" : drain);
        if (random.chance(60)) hints.emplace_back("target_through", random.one_of<std::string>({"0", "2000"}));
        if (random.chance(50)) hints.emplace_back("target_size", random.one_of<std::string>({"1", "100000", "1M"}));
        give_hints(random, hints);
    }

    void give_hints(Random& random, Hints const& hints)
    {
        for (auto& round : script_.rounds)
            for (auto& file : round.files)
                if (&round == &script_.rounds.front() || random.chance(60)) file.hints = hints;
        if (way_.dropin && way_.trouble == Way::Trouble::none) script_.rounds.back() = *(script_.rounds.end() - 2);
    }

    FileScript file()
    {
        FileScript file;
        for (auto n = random_.pick(1, 3); n > 0; --n) file.patterns.push_back(pattern());
        for (auto n = random_.pick(2, 9); n > 0; --n) file.calls.push_back(call(file.patterns));
        file.reread = random_.chance(40);
        return file;
    }

    Job pattern()
    {
        auto job = random_.chance(12) ? test::interleave(way_.ranks, random_.pick(0, 9000), random_.pick(1000, 30'000),
                                                         static_cast<int>(random_.pick(1, 25)))
                                      : test::random_job(random_, way_.ranks);
        if (!way_.dropin) return job;
        for (auto& variables : job)
            for (auto& variable : variables) ascend(variable);
        return job;
    }

    /// A file view: displacements ascend, and nothing is there twice.
    static void ascend(Declared& variable)
    {
        variable.array.reset();
        auto& extents = variable.extents;
        std::sort(extents.begin(), extents.end(), [](auto const& a, auto const& b) { return a.offset < b.offset; });
        std::vector<Extent> kept;
        std::int64_t end = 0;
        for (auto [offset, length] : extents) {
            auto const begin = std::max(offset, end);
            length -= begin - offset;
            if (length <= 0) continue;
            kept.push_back({begin, length});
            end = begin + length;
        }
        extents = std::move(kept);
    }

    Call call(std::vector<Job> const& patterns)
    {
        Call call;
        auto const what = random_.pick(1, 100);
        if (what > 60) call.kind = Call::Kind::read;
        if (what > 86) call.kind = Call::Kind::flush;
        if (what > 92) call.kind = Call::Kind::sync;
        if (what > 96) call.kind = Call::Kind::size;
        call.pattern = index(patterns.size());
        auto const begin = begin_of(patterns[call.pattern]);
        call.base = random_.one_of<std::int64_t>({0, 0, random_.pick(0, 20'000), random_.pick(-begin, 0)});
        call.background = random_.chance(25);
        return call;
    }

    Way way_;
    std::string stage_, tier_;
    Random random_;
    Script script_;
};

}  // namespace

Way way_of(std::uint64_t seed, int ranks, std::string const& interface, std::string const& place,
           std::string const& trouble)
{
    Way way{seed, ranks, interface == "dropin", place == "box", Way::Trouble::none};
    if (trouble == "fault") way.trouble = Way::Trouble::fault;
    if (trouble == "kill") way.trouble = Way::Trouble::kill;
    return way;
}

Script script_of(Way const& way, std::string const& stage, std::string const& tier)
{
    return Writer(way, stage, tier).write();
}

std::vector<Bytes> written_by(Way const& way, Script const& script, Place const& place, std::size_t rank)
{
    auto const& file = script.rounds[place.round].files[place.file];
    std::vector<Bytes> all;
    for (auto const& variable : file.patterns[file.calls[place.call].pattern][rank]) {
        Bytes data(static_cast<std::size_t>(variable.bytes()));
        auto const salt =
            way.seed * 7919 + place.round * 100'003 + place.file * 10'007 + place.call * 1009 + rank * 101 + all.size();
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_of(salt, i);
        all.push_back(std::move(data));
    }
    return all;
}

std::string file_name(std::size_t round, std::size_t file)
{
    return "file-" + std::to_string(round) + "-" + std::to_string(file);
}

}  // namespace tapioca::soak
