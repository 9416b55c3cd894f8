// A set whose subfiles lie on several nodes, as one process of one node reads and writes it.
#include <optional>

#include <gtest/gtest.h>
#include <sched.h>

#include "subfile/peer_service.hpp"
#include "subfile/peers.hpp"
#include "unit/subfile_jobs.hpp"

namespace tapioca::subfile {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::Scratch;
using test::some_bytes;

constexpr std::uint32_t nodes = 3;

/// A set with a subfile on each of some nodes, whose services run, and the target of a process of node 0.
class SetOnNodes {
public:
    explicit SetOnNodes(std::mt19937_64& random) : set_(scratch_, nodes)
    {
        write_at_random(set_, nodes, random);
        auto const rest = some_bytes(500, 5);
        set_.write_rest(set_.image().size() + 100, rest);
        set_.complete();
        cpu_set_t cores;
        EXPECT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
        std::vector<PeerAddress> services;
        std::map<std::uint32_t, int> node_of;
        for (std::uint32_t node = 0; node < nodes; ++node) {
            fs::create_directory(tier(node));
            auto const name = subfile_name(node);
            if (fs::exists(set_.part(name))) fs::rename(set_.part(name), tier(node) + "/" + name);
            EXPECT_TRUE(services_[node]
                            .emplace(set_.directory(), set_.stub().identity, target::OpenMode::update, tier(node))
                            .launch(cores));
            services.push_back(services_[node]->address());
            node_of[node] = static_cast<int>(node);
        }
        auto peers = std::make_shared<Peers>();
        peers->meet(std::move(services), 0, 20);
        peers->place({node_of});
        target.emplace(nullptr, set_.directory(), set_.stub().identity, target::OpenMode::update, tier(0), peers);
    }
    [[nodiscard]] Bytes const& image() const { return set_.image(); }
    void end_services()
    {
        for (auto& service : services_) service.reset();
    }
    /// The other nodes lose what they have.
    void clear_others()
    {
        for (std::uint32_t node = 1; node < nodes; ++node) fs::remove_all(tier(node));
    }
    /// A subfile is brought to the set's directory.
    void bring_back(std::uint32_t node)
    {
        auto const name = subfile_name(node);
        if (fs::exists(tier(node) + "/" + name)) fs::rename(tier(node) + "/" + name, set_.part(name));
    }

private:
    [[nodiscard]] std::string tier(std::uint32_t node) const { return scratch_.path("tier" + std::to_string(node)); }

    Scratch scratch_;
    test::Set set_;
    std::array<std::optional<PeerService>, nodes> services_;

public:
    std::optional<SetTarget> target;
};

TEST(SetOnSeveralNodes, IsReadAndWrittenByOneProcess)
{
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        SetOnNodes set(random);
        auto expected = set.image();
        auto const pick = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
        for (int step = 0; step < 20; ++step) {
            auto const at = pick(expected.size());
            auto const length = pick(std::min<std::size_t>(expected.size() - at, pick(1) == 0 ? 300 : 100'000));
            std::span const its(expected.data() + at, length);
            if (pick(2) == 0) {
                auto const fresh = some_bytes(length, random());
                std::copy(fresh.begin(), fresh.end(), its.begin());
                ASSERT_TRUE(set.target->write(static_cast<std::int64_t>(at), std::span<std::byte const>(fresh)));
                if (step % 8 == 0) {
                    ASSERT_TRUE(set.target->sync());
                }
            }
            Bytes bytes(length);
            auto const read = set.target->read(static_cast<std::int64_t>(at), std::span<std::byte>(bytes));
            ASSERT_TRUE(read) << read.error().text;
            ASSERT_EQ(*read, length);
            ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), its.begin())) << "seed " << seed << " step " << step;
        }
        Bytes all(expected.size());
        ASSERT_TRUE(set.target->read(0, std::span<std::byte>(all)));
        EXPECT_EQ(all, expected);
    }
}

TEST(SetOnSeveralNodes, CannotBeReadWithoutTheirServicesAndSaysWhy)
{
    std::mt19937_64 random(1);
    SetOnNodes set(random);
    set.end_services();
    Bytes all(set.image().size());
    auto const read = set.target->read(0, std::span<std::byte>(all));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::unsupported);
    EXPECT_NE(read.error().text.find("is not on this node"), std::string::npos) << read.error().text;
    EXPECT_NE(read.error().text.find("cannot be reached"), std::string::npos) << read.error().text;
}

TEST(SetOnSeveralNodes, WithoutTheirDataIsMissing)
{
    std::mt19937_64 random(3);
    SetOnNodes set(random);
    set.clear_others();
    Bytes all(set.image().size());
    auto const read = set.target->read(0, std::span<std::byte>(all));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::not_found);
    EXPECT_NE(read.error().text.find("this node does not have subfile."), std::string::npos) << read.error().text;
    EXPECT_EQ(read.error().text.find("is gone"), std::string::npos) << read.error().text;  // it was not this node's
}

TEST(SetOnSeveralNodes, IsFoundInItsDirectoryAfterItWasBroughtThere)
{
    for (bool const ended : {false, true}) {
        std::mt19937_64 random(2);
        SetOnNodes set(random);
        for (std::uint32_t node = 1; node < nodes; ++node) set.bring_back(node);
        if (ended) set.end_services();
        Bytes all(set.image().size());
        auto const read = set.target->read(0, std::span<std::byte>(all));
        ASSERT_TRUE(read) << read.error().text;
        EXPECT_EQ(all, set.image());
    }
}

}  // namespace
}  // namespace tapioca::subfile
