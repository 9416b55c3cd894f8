// Staged files against a byte-array model: random sequences of writes that overlap earlier ones, reads, flushes, syncs,
// sizes, closes and reopenings; every rank follows what all of them do.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

constexpr std::byte filler{0xA5};

Options random_options(Random& random, std::string const& directory)
{
    Options options;
    options.stage = random.chance(50) ? "dram" : "ssd:" + directory;
    if (random.chance(50))
        options.stage_mapping = random.one_of<StageMapping>({StageMapping::process, StageMapping::node});
    if (random.chance(20))
        options.stage_sync = random.one_of<StageSync>({StageSync::write, StageSync::collective, StageSync::sync});
    if (random.chance(20)) options.stage_size = random.one_of<std::uint64_t>({1, 1'200'000, 3'000'000});
    if (random.chance(30)) options.stage_drain = random.one_of<std::string>({"on", "100M"});
    if (random.chance(30)) options.direct = random.one_of<Direct>({Direct::never, Direct::always});
    if (random.chance(50)) options.buffersize = 4096;
    if (random.chance(5)) options.check = true;
    return options;
}

/// One file, its steps, and what it must contain.
class Trial {
public:
    Trial(Scratch const& scratch, std::uint64_t seed) : random_(seed), seed_(seed), path_(scratch.path("file"))
    {
        // Elsewhere, where every node has a place of its own.
        auto const* const place = std::getenv("STAGE_PLACE");
        stage_ = place ? place : std::filesystem::absolute(scratch.path("stage")).string();
        image_ = stream(seed, static_cast<std::size_t>(random_.pick(0, 1) * random_.pick(0, 50'000)));
        if (rank() == 0) {
            std::filesystem::create_directory(stage_);
            write_plain(path_, image_);
        }
        barrier();
        for (auto jobs = random_.pick(1, 3); jobs > 0; --jobs) jobs_.push_back(random_job(random_, ranks()));
        open();
    }

    void run()
    {
        for (auto calls = random_.pick(2, 24); calls > 0; --calls) {
            if (random_.chance(5)) ::usleep(3000);  // the background_drainer gets on
            auto const what = random_.pick(1, 100);
            if (what <= 55)
                write();
            else if (what <= 80)
                read();
            else if (what <= 85)
                file_->flush();
            else if (what <= 88)
                file_->sync();
            else if (what <= 95)
                EXPECT_EQ(file_->size(), image_.size());
            else
                reopen();
        }
        close();
        EXPECT_TRUE(contents(path_) == image_);
        EXPECT_FALSE(std::filesystem::exists(path_ + ".tapioca"));
        EXPECT_TRUE(std::filesystem::is_empty(stage_)) << "the log is gone";
        barrier();
    }

private:
    void open()
    {
        file_.emplace(File::open(MPI_COMM_WORLD, path_, Mode::update, random_options(random_, stage_)));
        steps_.clear();
        for (auto const& job : jobs_)
            steps_.push_back(file_->declare(pattern_of(job[static_cast<std::size_t>(rank())])));
    }
    void close()
    {
        steps_.clear();
        file_->close();
        barrier();
    }
    void reopen()
    {
        close();
        EXPECT_TRUE(contents(path_) == image_) << "closed files are complete";
        barrier();
        open();
    }
    std::size_t any_job()
    {
        return static_cast<std::size_t>(random_.pick(0, static_cast<std::int64_t>(jobs_.size()) - 1));
    }
    std::int64_t any_base(Job const& job)
    {
        return random_.one_of<std::int64_t>({0, 0, random_.pick(0, 20'000), random_.pick(-begin_of(job), 0)});
    }

    void write()
    {
        auto const number = any_job();
        auto const& job = jobs_[number];
        auto& step = steps_[number];
        auto const base = any_base(job);
        auto const me = static_cast<std::size_t>(rank());
        ++runs_;
        std::vector<Bytes> mine;
        for (std::size_t v = 0; v < job[me].size(); ++v)
            mine.push_back(data_of(seed_, runs_, me, v, job[me][v].bytes()));
        for (std::size_t v = 0; v < mine.size(); ++v) step.write(v, mine[v]);
        step.rebase(base);
        if (random_.chance(20)) {
            step.start();
            step.progress();
            step.wait();
        } else {
            step.finish();
        }
        for (auto& bytes : mine) std::fill(bytes.begin(), bytes.end(), filler);  // the buffers are free again
        for (std::size_t r = 0; r < job.size(); ++r)
            for (std::size_t v = 0; v < job[r].size(); ++v)
                apply(image_, base, job[r][v], data_of(seed_, runs_, r, v, job[r][v].bytes()));
    }

    void read()
    {
        auto const number = any_job();
        auto const& declared = jobs_[number][static_cast<std::size_t>(rank())];
        auto& step = steps_[number];
        auto const base = any_base(jobs_[number]);
        std::vector<Bytes> mine;
        for (auto const& variable : declared) mine.emplace_back(static_cast<std::size_t>(variable.bytes()), filler);
        for (std::size_t v = 0; v < mine.size(); ++v) step.read(v, mine[v]);
        step.rebase(base);
        step.finish();
        for (std::size_t v = 0; v < mine.size(); ++v) {
            std::uint64_t received = 0;
            EXPECT_TRUE(mine[v] == gather(image_, base, declared[v], filler, received)) << "variable " << v;
            EXPECT_EQ(step.received(v), received) << "variable " << v;
        }
    }

    Random random_;
    std::uint64_t seed_;
    std::string path_;
    std::string stage_;
    Bytes image_;
    std::vector<Job> jobs_;
    std::optional<File> file_;
    std::vector<Step> steps_;
    int runs_ = 0;
};

TEST(Stage, FilesAreWhatTheModelSays)
{
    Scratch const scratch;
    // PATTERNS=50000 makes a soak test of it.
    auto const* const wish = std::getenv("PATTERNS");
    int const patterns = wish ? std::atoi(wish) : ranks() == 8 ? 60 : 120;
    auto const* const from = std::getenv("FIRST");
    int tried = 0;
    for (std::uint64_t seed = from ? std::strtoull(from, nullptr, 10) : 1; tried < patterns; ++tried, ++seed) {
        Trial(scratch, 1'000'000 * static_cast<std::uint64_t>(ranks()) + seed).run();
        if (on_all_ranks(!HasFailure())) continue;
        if (rank() == 0) std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
        break;
    }
    if (rank() == 0) std::printf("sequences tried: %d\n", tried);
}

}  // namespace
}  // namespace tapioca::test
