// The settings' table: where values come from, what is refused, and what the refusal says.
#include "settings/settings.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "settings/row.hpp"

namespace tapioca::settings {
namespace {

/// The message with which `resolve` refuses, or "" if it does not.
std::string refusal(Options const& code, Pairs const& hints, Pairs const& environment)
{
    auto const result = resolve(code, hints, environment);
    if (result) return "";
    EXPECT_EQ(result.error().code, Errc::setting);
    return result.error().text;
}

TEST(Settings, AreDefaultsWhereNothingIsSet)
{
    auto const settings = resolve({}, {}, {});
    ASSERT_TRUE(settings);
    EXPECT_TRUE(settings->lines().empty());
    EXPECT_TRUE(settings->origins.empty());
}

TEST(Settings, EnvironmentBeatsHintsBeatCode)
{
    Options code;
    code.buffersize = 1;
    code.buffers = 3;
    code.nbaggr = 5;
    Pairs const hints = {{"tapioca_buffersize", "8K"}, {"tapioca_buffers", "4"}};
    Pairs const environment = {{"TAPIOCA_BUFFERSIZE", "64K"}};
    auto const settings = resolve(code, hints, environment);
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->options.buffersize, 65536U);
    EXPECT_EQ(settings->options.buffers, 4);
    EXPECT_EQ(settings->options.nbaggr, 5);
    EXPECT_EQ(settings->origins.at("buffersize"), "environment");
    EXPECT_EQ(settings->origins.at("buffers"), "hint");
    EXPECT_EQ(settings->origins.at("nbaggr"), "code");
}

TEST(Settings, TakeEveryNameOfTheTable)
{
    Pairs const environment = {
        {"TAPIOCA_BUFFERSIZE", "1M"},      {"TAPIOCA_BUFFERS", "64"},        {"TAPIOCA_NBAGGR", "2"},
        {"TAPIOCA_AGGRTIER", "DRAM"},      {"TAPIOCA_MEMORY", "1G"},         {"TAPIOCA_STRATEGY", "topology_aware"},
        {"TAPIOCA_DIRECT", "Always"},      {"TAPIOCA_DEVNULL", "yes"},       {"TAPIOCA_CHECK", "off"},
        {"TAPIOCA_TIMEOUT", "2.5"},        {"TAPIOCA_REPORT", "r.json"},     {"TAPIOCA_COMMSPLIT", "1"},
        {"TAPIOCA_NBAGGR_READ", "Auto"},   {"TAPIOCA_AGGR_PER_OST", "4"},    {"TAPIOCA_STRIPING_UNIT", "4M"},
        {"TAPIOCA_STRIPING_FACTOR", "48"}, {"TAPIOCA_MODEL", "Report-2017"}, {"TAPIOCA_PLATFORM", "Sites/mira.toml"},
        {"TAPIOCA_PERSISTENCY", "job"},    {"TAPIOCA_ROOT", "/opt/what"},    {"PATH", "/bin"}};
    auto const settings = resolve({}, {}, environment);
    ASSERT_TRUE(settings) << settings.error().text;
    auto const& options = settings->options;
    EXPECT_EQ(options.buffers, 64);
    EXPECT_EQ(options.aggrtier, "dram");
    EXPECT_EQ(options.strategy, "TOPOLOGY_AWARE");
    EXPECT_EQ(options.direct, Direct::always);
    EXPECT_EQ(options.devnull, true);
    EXPECT_EQ(options.check, false);
    EXPECT_EQ(options.timeout, 2.5);
    EXPECT_EQ(options.report, "r.json");
    EXPECT_EQ(options.nbaggr_read, AggregatorCount::automatic);
    EXPECT_EQ(options.aggr_per_ost, 4);
    EXPECT_EQ(options.striping_unit, 4U << 20);
    EXPECT_EQ(options.striping_factor, 48);
    EXPECT_EQ(options.model, "report-2017");
    EXPECT_EQ(options.platform, "Sites/mira.toml");
    EXPECT_EQ(options.persistency, Persistency::job);
    EXPECT_EQ(settings->lines().size(), 19U);
}

TEST(Settings, ReadTheStandardHints)
{
    auto const settings = resolve({},
                                  {{"cb_nodes", "3"},
                                   {"cb_buffer_size", "16777216"},
                                   {"striping_unit", "1048576"},
                                   {"striping_factor", "8"},
                                   {"romio_no_indep_rw", "true"}},
                                  {});
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->options.striping_unit, 1048576U);
    EXPECT_EQ(settings->options.striping_factor, 8);
    EXPECT_EQ(settings->options.nbaggr, 3);
    EXPECT_EQ(settings->options.buffersize, 16777216U);
    EXPECT_EQ(settings->origins.at("nbaggr"), "hint");
}

TEST(Settings, OwnHintBeatsTheStandardOneInAnyOrder)
{
    auto const settings = resolve({}, {{"tapioca_nbaggr", "2"}, {"cb_nodes", "3"}}, {});
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->options.nbaggr, 2);
}

TEST(Settings, UnknownNameSuggestsTheNearest)
{
    EXPECT_EQ(refusal({}, {}, {{"TAPIOCA_BUFERSIZE", "1"}}),
              "unknown setting TAPIOCA_BUFERSIZE: did you mean TAPIOCA_BUFFERSIZE?");
    EXPECT_EQ(refusal({}, {{"tapioca_nbagr", "1"}}, {}), "unknown setting tapioca_nbagr: did you mean tapioca_nbaggr?");
    EXPECT_EQ(refusal({}, {}, {{"TAPIOCA_", "1"}}).substr(0, 24), "unknown setting TAPIOCA_");
}

TEST(Settings, BadValuesNameTheSettingTheValueAndWhatIsExpected)
{
    struct Case {
        char const* name;
        char const* value;
    };
    for (auto const& [name, value] : std::initializer_list<Case>{{"BUFFERSIZE", "0"},
                                                                 {"BUFFERSIZE", "-4096"},
                                                                 {"BUFFERSIZE", "16Q"},
                                                                 {"BUFFERSIZE", ""},
                                                                 {"BUFFERSIZE", "9223372036854775807"},
                                                                 {"BUFFERS", "0"},
                                                                 {"BUFFERS", "65"},
                                                                 {"BUFFERS", "2.5"},
                                                                 {"BUFFERS", "two"},
                                                                 {"NBAGGR", "0"},
                                                                 {"NBAGGR", "99999999999"},
                                                                 {"NBAGGR", "-2"},
                                                                 {"NBAGGR", "65537"},
                                                                 {"NBAGGR", "2 or 3"},
                                                                 {"NBAGGR_READ", "many"},
                                                                 {"AGGR_PER_OST", "0"},
                                                                 {"AGGR_PER_OST", "65"},
                                                                 {"STRIPING_UNIT", "0"},
                                                                 {"STRIPING_FACTOR", "0"},
                                                                 {"STRIPING_FACTOR", "100001"},
                                                                 {"AGGRTIER", ""},
                                                                 {"AGGRTIER", "fast one"},
                                                                 {"MODEL", "paper"},
                                                                 {"PERSISTENCY", "ever"},
                                                                 {"PLATFORM", ""},
                                                                 {"STRATEGY", "FASTEST"},
                                                                 {"DIRECT", "sometimes"},
                                                                 {"MEMORY", "lots"},
                                                                 {"DEVNULL", "2"},
                                                                 {"CHECK", "maybe"},
                                                                 {"TIMEOUT", "-1"},
                                                                 {"TIMEOUT", "nan"},
                                                                 {"TIMEOUT", "1s"},
                                                                 {"REPORT", ""}}) {
        auto const full = std::string("TAPIOCA_") + name;
        auto const text = refusal({}, {}, {{full, value}});
        EXPECT_TRUE(text.starts_with(full + "=" + value + ": expected ")) << text;
    }
}

TEST(Settings, ValuesSetInCodeAreCheckedToo)
{
    Options zero;
    zero.buffersize = 0;
    EXPECT_TRUE(refusal(zero, {}, {}).starts_with("Options::buffersize=0: expected"));
    Options many;
    many.buffers = 65;
    EXPECT_TRUE(refusal(many, {}, {}).starts_with("Options::buffers=65: expected"));
    Options empty;
    empty.report = "";
    EXPECT_NE(refusal(empty, {}, {}), "");
    Options tier;
    tier.aggrtier = "a tape";
    EXPECT_NE(refusal(tier, {}, {}), "");
    for (int const number : {0, -1, -2, -3, 65537}) {  // -2 and -3 once stood for rules
        auto const shown = std::to_string(number) + ": expected a whole number from 1 to 65536, auto, poster or paper";
        Options writing;
        writing.nbaggr = number;
        EXPECT_TRUE(refusal(writing, {}, {}).starts_with("Options::nbaggr=" + shown)) << refusal(writing, {}, {});
        Options reading;
        reading.nbaggr_read = number;
        EXPECT_TRUE(refusal(reading, {}, {}).starts_with("Options::nbaggr_read=" + shown)) << refusal(reading, {}, {});
    }
    Options no_value;
    no_value.direct = static_cast<Direct>(7);
    EXPECT_TRUE(refusal(no_value, {}, {}).starts_with("Options::direct=7: expected auto, never or always"));
}

TEST(Settings, NamesGivenInCodeAreRefusedWithTheNamesThereAre)
{
    struct Case {
        std::optional<std::string> Options::*member;
        char const* name;
        char const* value;
        std::vector<std::string> valid;
    };
    for (auto const& [member, name, value, valid] : std::initializer_list<Case>{
             {&Options::transport, "transport", "rdma", {"p2p", "rma"}},
             {&Options::strategy, "strategy", "FASTEST", {"CONTENTION_AWARE", "RANK_ORDER"}},
             {&Options::model, "model", "paper", {"default", "paper-2024", "cluster-2017", "poster", "report-2017"}},
             {&Options::learn, "learn", "of course", {"on", "off", "always", "a file"}},
             {&Options::stage_drain, "stage_drain", "fast", {"off", "on", "bytes per second"}}}) {
        Options options;
        options.*member = value;
        auto const text = refusal(options, {}, {});
        EXPECT_TRUE(text.starts_with(std::string("Options::") + name + "=" + value + ": expected ")) << text;
        for (auto const& word : valid) EXPECT_NE(text.find(word), std::string::npos) << text;
    }
}

TEST(Settings, EnumerationsGivenInCodeAreThoseOfText)
{
    Options code;
    code.direct = Direct::always;
    code.persistency = Persistency::permanent;
    code.stage_mapping = StageMapping::node;
    code.stage_sync = StageSync::write;
    auto const settings = resolve(code, {}, {});
    ASSERT_TRUE(settings) << settings.error().text;
    EXPECT_EQ(describe(*settings), (std::vector<std::string>{"persistency=permanent (code)", "direct=always (code)",
                                                             "stage_mapping=node (code)", "stage_sync=write (code)"}));
    auto const after = unpack(pack(*settings)).options;
    EXPECT_EQ(after.direct, Direct::always);
    EXPECT_EQ(after.persistency, Persistency::permanent);
    EXPECT_EQ(after.stage_mapping, StageMapping::node);
    EXPECT_EQ(after.stage_sync, StageSync::write);
}

TEST(Settings, AreToldAsTheyWereGiven)
{
    Options code;
    code.stage = "tape";
    auto settings =
        resolve(code, {{"tapioca_aggrtier", "drum"}, {"cb_nodes", "2"}}, {{"TAPIOCA_PLATFORM", "Here"}}).value();
    ASSERT_TRUE(add_defaults(settings, {{"model", "poster"}}, "platform file"));
    EXPECT_EQ(settings.as_given("stage"), "Options::stage=tape");
    EXPECT_EQ(settings.as_given("aggrtier"), "tapioca_aggrtier=drum");
    EXPECT_EQ(settings.as_given("platform"), "TAPIOCA_PLATFORM=Here");
    EXPECT_EQ(settings.as_given("model"), "model=poster (platform file)");
    EXPECT_EQ(settings.as_given("memory"), "memory");
}

TEST(Settings, NumberOfAggregatorsMayBeAWord)
{
    Options code;
    code.nbaggr = AggregatorCount::poster;
    auto const settings = resolve(code, {{"tapioca_nbaggr_read", "7"}}, {});
    ASSERT_TRUE(settings) << settings.error().text;
    EXPECT_EQ(settings->options.nbaggr, AggregatorCount::poster);
    EXPECT_EQ(settings->lines().at(0).value, "poster");
    auto const after = unpack(pack(*settings));
    EXPECT_EQ(after.options.nbaggr, AggregatorCount::poster);
    EXPECT_EQ(after.options.nbaggr_read, 7);
    EXPECT_EQ(resolve({}, {{"cb_nodes", "AUTO"}}, {})->options.nbaggr, AggregatorCount::automatic);
}

TEST(Settings, TierKeepsTheCaseOfItsPlace)
{
    EXPECT_EQ(resolve({}, {{"tapioca_aggrtier", "SSD:/Scratch/A"}}, {})->options.aggrtier, "ssd:/Scratch/A");
}

TEST(Settings, Stage)
{
    auto const options = resolve({}, {},
                                 {{"TAPIOCA_STAGE", "SSD:/Local"},
                                  {"TAPIOCA_STAGE_MAPPING", "Node"},
                                  {"TAPIOCA_STAGE_SYNC", "collective"},
                                  {"TAPIOCA_STAGE_DRAIN", "500M"},
                                  {"TAPIOCA_STAGE_SIZE", "1G"}})
                             ->options;
    EXPECT_EQ(options.stage, "ssd:/Local");
    EXPECT_EQ(options.stage_mapping, StageMapping::node);
    EXPECT_EQ(options.stage_sync, StageSync::collective);
    EXPECT_EQ(options.stage_drain, "500m");
    EXPECT_EQ(options.stage_size, std::uint64_t{1} << 30);
    for (auto const& [name, value] : settings::Pairs{{"TAPIOCA_STAGE", "a b"},
                                                     {"TAPIOCA_STAGE_MAPPING", "rank"},
                                                     {"TAPIOCA_STAGE_SYNC", "never"},
                                                     {"TAPIOCA_STAGE_DRAIN", "fast"},
                                                     {"TAPIOCA_STAGE_DRAIN", "0"},
                                                     {"TAPIOCA_STAGE_SIZE", "-1"}})
        EXPECT_NE(refusal({}, {}, {{name, value}}), "") << name << "=" << value;
    EXPECT_NE(refusal({}, {{"tapioca_transport", "shm"}}, {}), "");
}

TEST(Settings, NamesOfSitesModulesAreIgnored)
{
    EXPECT_EQ(refusal({}, {}, {{"TAPIOCA_DIR", "/a"}, {"TAPIOCA_HOME", ""}, {"TAPIOCA_VERSION", "9"}}), "");
}

TEST(Settings, TravelAsTextUnchanged)
{
    Options code;
    code.buffersize = 12345;
    code.timeout = 0.1;
    code.direct = Direct::never;
    auto const before = resolve(code, {{"tapioca_report", "a b=c.json"}}, {{"TAPIOCA_CHECK", "1"}});
    ASSERT_TRUE(before);
    auto const after = unpack(pack(*before));
    EXPECT_EQ(after.origins, before->origins);
    EXPECT_EQ(after.options.buffersize, 12345U);
    EXPECT_EQ(after.options.timeout, 0.1);
    EXPECT_EQ(after.options.direct, Direct::never);
    EXPECT_EQ(after.options.report, "a b=c.json");
    EXPECT_EQ(after.options.check, true);
    EXPECT_EQ(after.options.buffers, std::nullopt);
    EXPECT_EQ(pack(after), pack(*before));
    EXPECT_EQ(pack(unpack("")), "");
}

TEST(Settings, TravelWhateverTheyHold)
{
    auto const before = resolve({}, {{"tapioca_report", "a\x1e\x1f\n3:b"}}, {}).value();
    auto const after = unpack(pack(before));
    EXPECT_EQ(after.options.report, before.options.report);
    EXPECT_EQ(after.origins, before.origins);
    for (auto const* const text : {"7", "7:buffers", "7:buffers1:2", "x", "99:a", ":::", "18446744073709551615:a"})
        EXPECT_TRUE(unpack(text).options.buffers == std::nullopt || text == std::string("7:buffers1:2")) << text;
}

TEST(Settings, RefusalsAreOneLine)
{
    for (auto const& [name, value] : Pairs{{"tapioca_buffers", "1\n2"}, {"tapioca_buf\nfers", "1"}}) {
        auto const result = resolve({}, {{name, value}}, {});
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().text.find('\n'), std::string::npos) << result.error().text;
    }
}

TEST(Settings, ComeFromTheProcessEnvironment)
{
    ::setenv("TAPIOCA_BUFFERS", "7", 1);
    auto const pairs = read_environment();
    ::unsetenv("TAPIOCA_BUFFERS");
    auto const found =
        std::find(pairs.begin(), pairs.end(), std::pair<std::string, std::string>("TAPIOCA_BUFFERS", "7"));
    EXPECT_NE(found, pairs.end());
    for (auto const& [name, value] : pairs) EXPECT_TRUE(name.starts_with("TAPIOCA_"));
}

TEST(Settings, EveryRowTakesWhatItShows)
{
    for (auto const& row : table()) {
        Options options;
        EXPECT_EQ(row.show(options), std::nullopt) << row.name;
        bool taken = false;
        for (auto const* const value :
             {"1", "on", "p2p", "node", "collective", "job", "never", "default", "RANK_ORDER"})
            if (!taken && row.parse(row, options, value)) {
                taken = true;
                auto const shown = row.show(options);
                ASSERT_TRUE(shown) << row.name;
                EXPECT_TRUE(row.parse(row, options, *shown)) << row.name << "=" << *shown;
            }
        EXPECT_TRUE(taken) << row.name << ": expects " << row.expected();
        EXPECT_EQ(row.variable(), "TAPIOCA_" + upper(row.name));
    }
}

TEST(Settings, TheTimeOutOfTheTableIsTheOneInForce)
{
    for (auto const& row : table())
        if (row.name == "timeout") {
            EXPECT_TRUE(row.otherwise.starts_with(std::to_string(static_cast<int>(default_timeout)) + ";"));
        }
}

}  // namespace
}  // namespace tapioca::settings
