// Checks that the documents list what the tables have, with the same texts.
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/strategies.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/topology/kind.hpp"
#include "plan/strategy/strategy.hpp"

namespace tapioca {
namespace {

std::string document(std::string const& name)
{
    std::ostringstream text;
    text << std::ifstream(std::string(DOCUMENTS "/") + name).rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}

testing::AssertionResult has(std::string const& name, std::string const& line)
{
    if (document(name).find(line) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "docs/" << name << " lacks: " << line;
}

TEST(Documents, NameEveryTierTopologyAndStrategy)
{
    for (auto const* const kind : machine::tier_kinds())
        EXPECT_TRUE(has("platforms.md", fmt::format("\n| `{}` | {} |", kind->name, kind->help)));
    for (auto const* const kind : machine::topology_kinds()) {
        EXPECT_TRUE(has("platforms.md", fmt::format("\n| `{}` | {} |", kind->name, kind->help)));
        for (auto const key : kind->keys) {
            EXPECT_TRUE(has("platforms.md", fmt::format("`{}`", key)));
            EXPECT_TRUE(has("platforms.md", fmt::format("*{}:*", kind->name)));
        }
    }
    for (auto const& [name, strategy] : plan::strategies()) {
        auto const* const by_default = name == core::default_strategy ? " (default)" : "";
        EXPECT_TRUE(has("model.md", fmt::format("\n| `{}`{} | {} | {} |", name, by_default, strategy->minimises,
                                                strategy->further)));
    }
}

TEST(Strategies, TheDefaultIsOneOfThem)
{
    EXPECT_NE(plan::strategy_named(core::default_strategy), nullptr);
    EXPECT_EQ(plan::strategy_named("FAST"), nullptr);
    ASSERT_EQ(plan::strategies().size(), core::strategy_names().size());
    for (std::size_t i = 0; i < plan::strategies().size(); ++i) {
        EXPECT_EQ(plan::strategies()[i].name, core::strategy_names()[i]);
        EXPECT_EQ(plan::name(*plan::strategies()[i].strategy), core::strategy_names()[i]);
    }
}

}  // namespace
}  // namespace tapioca
