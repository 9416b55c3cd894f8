// People's mistakes, at random: other working directories, names that go or come to mean another file, ranks that name
// different files, calls that were forgotten, children that are forked. Whatever happens, the bytes are right or every
// rank has the same error; nothing is silent, nothing hangs, and no other file is touched.
//
// MISTAKES=2000 tries so many programs, MISTAKES_SEED=N begins with seed N, MISTAKES_TALK=1 shows the errors.
// MISTAKES_FORK=never leaves children out, MISTAKES_FORK=always forks them while a step is under way, too.
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::byte filler{0xA5};

/// What a file must hold, where that is known.
struct Model {
    Bytes bytes;
    std::vector<bool> unknown;         ///< of a step that failed
    std::optional<std::size_t> least;  ///< the least size, after a step that failed

    void write(Job const& job, std::uint64_t seed, int run, std::int64_t base, bool failed)
    {
        if (failed && !least) least = bytes.size();
        for (std::size_t r = 0; r < job.size(); ++r)
            for (std::size_t v = 0; v < job[r].size(); ++v) {
                apply(bytes, base, job[r][v], data_of(seed, run, r, v, job[r][v].bytes()));
                unknown.resize(bytes.size());
                for (auto const& [offset, length] : job[r][v].extents)
                    for (auto at = base + offset; at < base + offset + length; ++at)
                        unknown[static_cast<std::size_t>(at)] = failed;
            }
    }
    void expect_in(Bytes const& file) const
    {
        if (least)
            EXPECT_GE(file.size(), *least);
        else
            EXPECT_EQ(file.size(), bytes.size());
        EXPECT_LE(file.size(), bytes.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < std::min(file.size(), bytes.size()); ++i) {
            bool const any = i < unknown.size() && unknown[i];
            if (!any && file[i] != bytes[i]) ++wrong;
        }
        EXPECT_EQ(wrong, 0U) << "bytes are wrong";
    }
};

Bytes all_of(int fd)
{
    Bytes bytes(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
    EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
}

std::string when_to_fork()
{
    auto const* const wish = std::getenv("MISTAKES_FORK");
    return wish ? wish : "between";
}

/// A child that ends at once must leave its parent alone, and end.
void fork_a_child(bool quickly)
{
    std::fflush(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        if (quickly) ::_exit(0);
        std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    }
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 3000 && ended == 0; ++i) {
        ended = ::waitpid(child, &status, WNOHANG);
        if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(ended, child) << "the child does not end";
    if (ended == child) return;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
}

/// A program on some of the ranks, with mistakes in it.
class Program {
public:
    Program(MPI_Comm comm, std::string directory, std::uint64_t seed)
        : comm_(comm), directory_(std::move(directory)), seed_(seed), random_(seed)
    {
        MPI_Comm_rank(comm_, &me_);
        MPI_Comm_size(comm_, &n_);
    }
    Program(Program const&) = delete;
    Program& operator=(Program const&) = delete;
    ~Program()
    {
        if (fd_ >= 0) ::close(fd_);
    }

    void run();

private:
    [[nodiscard]] std::string in(std::string const& name) const { return directory_ + "/" + name; }
    [[nodiscard]] bool all(bool mine) const
    {
        int value = mine ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, comm_);
        return value == 1;
    }
    void meet() const { MPI_Barrier(comm_); }
    int somebody() { return static_cast<int>(random_.pick(0, n_ - 1)); }

    Errc call(char const* name, std::function<void()> const& body);
    void expect_ok(char const* name, Errc code);
    void lay_out();
    [[nodiscard]] Options options();
    void open();
    [[nodiscard]] std::string path_of_this_rank(int mistake, int victim);
    void interfere();
    void move(Step& step, Job const& job, File& file, Model& model, std::int64_t base);
    void forget_wait(Step& step, Job const& job);
    void use();
    void visit_second(Step& step, Job const& job);
    void end();
    void expect_others_untouched();

    MPI_Comm comm_;
    std::string directory_;
    std::uint64_t seed_;
    Random random_;
    int me_ = 0;
    int n_ = 1;
    Options options_;
    bool staged_ = false;
    bool several_nodes_ = false;
    Mode mode_ = Mode::create;
    std::optional<File> file_;
    std::vector<std::unique_ptr<Step>> steps_;
    Model model_;
    int fd_ = -1;             ///< of the file that was opened, on rank 0, whatever its name is by now
    bool moves_ = false;      ///< the path goes with the working directory, absolute though it is
    bool name_lost_ = false;  ///< ranks that have yet to open the file cannot
    bool forgotten_ = false;  ///< something was supplied, and finish() never called
    bool abandoned_ = false;
    int runs_ = 0;
    std::string replacement_;
};

/// Runs a collective call: all ranks must have the same outcome.
Errc Program::call(char const* name, std::function<void()> const& body)
{
    auto const mine = caught(body);
    std::uint64_t const number = std::hash<std::string>{}(mine.text) ^ static_cast<std::uint64_t>(mine.code);
    std::uint64_t least = number;
    std::uint64_t most = number;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, comm_);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, comm_);
    if (!staged_) {  // else a write is everybody's own
        EXPECT_EQ(least, most) << name << ": ranks have different answers, this one " << static_cast<int>(mine.code)
                               << ": " << mine.text;
    }
    int code = static_cast<int>(mine.code);
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, comm_);
    if (code != 0 && std::getenv("MISTAKES_TALK")) std::printf("[%d] %s: %s\n", me_, name, mine.text.c_str());
    return static_cast<Errc>(code);
}

/// Names that were lost excuse an error, and nothing else does.
void Program::expect_ok(char const* name, Errc code)
{
    if (code == Errc::ok || abandoned_) return;
    EXPECT_TRUE(name_lost_) << name << ": failed with code " << static_cast<int>(code);
}

void Program::lay_out()
{
    if (me_ == 0) {
        fs::remove_all(directory_);
        fs::create_directories(in("ssd"));
        write_plain(in("other"), stream(seed_ + 1, 5000));
        for (int r = 0; r < n_; ++r) {
            fs::create_directory(in("elsewhere" + std::to_string(r)));
            write_plain(in("elsewhere" + std::to_string(r) + "/target"), stream(seed_ + 2, 3000));
        }
    }
    meet();
    fs::current_path(directory_);
}

Options Program::options()
{
    Options options;
    options.direct = random_.one_of<Direct>({Direct::automatic, Direct::never, Direct::never, Direct::always});
    if (random_.chance(70)) options.nbaggr = static_cast<int>(random_.pick(1, n_));
    if (random_.chance(60)) options.buffersize = random_.one_of<std::uint64_t>({4096, 8192, 65536});
    options.timeout = 100;
    if (random_.chance(60)) {
        options.ranks_per_node = static_cast<int>(random_.pick(1, 2));
        several_nodes_ = n_ > *options.ranks_per_node;
        options.transport = random_.one_of<std::string>({"p2p", "rma"});
    }
    if (random_.chance(15)) options.check = true;
    staged_ = random_.chance(15);
    if (staged_) options.stage = "ssd:" + in("ssd");
    if (staged_ && random_.chance(30)) options.stage_drain = "on";
    return options;
}

enum OpeningMistake { none, alias, other_file, missing_file, other_mode, other_directory };

std::string Program::path_of_this_rank(int mistake, int victim)
{
    auto const usual = random_.one_of<std::string>({in("target"), "target", "./target", "/proc/self/cwd/target"});
    auto const link = random_.one_of<std::string>({"link", "hard", "./././target", in("elsewhere0/../target")});
    moves_ = usual.starts_with("/proc");
    if (me_ != victim) return usual;
    switch (mistake) {
    case alias: return link;
    case other_file: return "other";
    case missing_file: return "missing";
    default: return usual;
    }
}

void Program::open()
{
    options_ = options();
    mode_ = random_.one_of<Mode>({Mode::create, Mode::update, Mode::update, Mode::read});
    bool const there = mode_ != Mode::create || random_.chance(60);
    Bytes const before = there ? stream(seed_, static_cast<std::size_t>(random_.pick(0, 60'000))) : Bytes();
    auto mistake =
        random_.one_of<int>({none, none, none, alias, other_file, missing_file, other_mode, other_directory});
    if (!there && mistake == alias) mistake = none;
    auto const victim = somebody();
    if (n_ == 1 && mistake != alias) mistake = none;
    if (me_ == 0) {
        if (there) write_plain(in("target"), before);
        fs::create_symlink("target", in("link"));
        if (there) fs::create_hard_link(in("target"), in("hard"));
    }
    meet();
    bool const must_fail = mistake > alias;
    auto const path = mistake == other_directory ? std::string("target") : path_of_this_rank(mistake, victim);
    auto const mode =
        mistake == other_mode && me_ == victim ? (mode_ == Mode::read ? Mode::update : Mode::read) : mode_;
    if (mistake == other_directory && me_ == victim) fs::current_path(in("elsewhere" + std::to_string(me_)));
    auto code = call("open", [&] { file_.emplace(File::open(comm_, path, mode, options_)); });
    if (mistake == other_directory) fs::current_path(directory_);
    if (!must_fail) {
        EXPECT_EQ(code, Errc::ok) << "open, path " << path;
    } else {
        EXPECT_NE(code, Errc::ok) << "open: mistake " << mistake << " of rank " << victim << " was not noticed";
        EXPECT_TRUE(contents(in("target")) == before) << "a refused open changed the file";
        file_.reset();
        meet();
        code = call("open again", [&] { file_.emplace(File::open(comm_, "target", mode_, options_)); });
        EXPECT_EQ(code, Errc::ok);
    }
    if (mode_ != Mode::create) model_.bytes = before;
    if (me_ == 0) fd_ = ::open(in("target").c_str(), O_RDONLY | O_CLOEXEC);
    meet();
}

/// What people do between two calls.
void Program::interfere()
{
    auto const who = somebody();
    bool const everybody = random_.chance(30);
    auto const quickly = random_.chance(50);
    auto const what = random_.pick(1, 100);
    meet();
    if (what <= 25) {
        name_lost_ = name_lost_ || moves_;
        if (everybody || me_ == who) fs::current_path(in("elsewhere" + std::to_string(me_)));
    } else if (what <= 35 && !name_lost_) {
        name_lost_ = true;
        auto const how = random_.pick(0, 3);
        if (me_ == 0 && how == 0) fs::rename(in("target"), in("renamed"));
        if (me_ == 0 && how == 1) fs::remove(in("target"));
        if (me_ == 0 && how == 2) {
            write_plain(in("new"), stream(seed_ + 3, 4000));
            fs::rename(in("new"), in("target"));
        }
        if (me_ == 0 && how == 3) {
            fs::remove(in("target"));
            write_plain(in("target"), stream(seed_ + 3, 4000));
        }
        if (how >= 2) replacement_ = in("target");
    } else if (what <= 45 && when_to_fork() != "never") {
        if (me_ == who) fork_a_child(quickly);
    }
    meet();
}

/// One run of a step: written data goes to the model, too, and what is read is compared with it.
void Program::move(Step& step, Job const& job, File& file, Model& model, std::int64_t base)
{
    auto const me = static_cast<std::size_t>(me_);
    bool const second = &file != &*file_;
    bool const writing = second || (mode_ != Mode::read && random_.chance(60));
    bool const background = random_.chance(30);
    auto const run = ++runs_;
    std::vector<Bytes> mine;
    for (std::size_t v = 0; v < job[me].size(); ++v)
        mine.push_back(writing ? data_of(seed_, run, me, v, job[me][v].bytes())
                               : Bytes(static_cast<std::size_t>(job[me][v].bytes()), filler));
    auto const failed = call("rebase", [&] { step.rebase(base); });
    EXPECT_EQ(failed, Errc::ok);
    for (std::size_t v = 0; v < mine.size(); ++v) writing ? step.write(v, mine[v]) : step.read(v, mine[v]);
    Errc code = Errc::ok;
    if (background) {
        code = call("start", [&] { step.start(); });
        if (code == Errc::ok && when_to_fork() == "always" && me_ == run % n_) fork_a_child(run % 2 == 0);
        if (code == Errc::ok) code = call("wait", [&] { step.wait(); });
    } else {
        code = call("finish", [&] { step.finish(); });
    }
    expect_ok("run", code);
    if (writing) return model.write(job, seed_, run, base, code != Errc::ok);
    if (code != Errc::ok || model.least) return;
    for (std::size_t v = 0; v < mine.size(); ++v) {
        std::uint64_t received = 0;
        EXPECT_TRUE(mine[v] == gather(model.bytes, base, job[me][v], filler, received)) << "read, variable " << v;
        EXPECT_EQ(step.received(v), received);
    }
}

/// start(), and close() in place of wait(), or nothing at all.
void Program::forget_wait(Step& step, Job const& job)
{
    auto const me = static_cast<std::size_t>(me_);
    auto const run = ++runs_;
    std::vector<Bytes> mine;
    for (std::size_t v = 0; v < job[me].size(); ++v) mine.push_back(data_of(seed_, run, me, v, job[me][v].bytes()));
    step.rebase(0);
    for (std::size_t v = 0; v < mine.size(); ++v) step.write(v, mine[v]);
    auto code = call("start", [&] { step.start(); });
    expect_ok("start", code);
    if (code != Errc::ok) return model_.write(job, seed_, run, 0, true);
    code = call("close", [&] { file_->close(); });
    EXPECT_EQ(code, Errc::invalid_state) << "closed with a step under way";
    if (!several_nodes_ && random_.chance(20)) {  // abandoned ones between nodes keep a communicator for good
        abandoned_ = true;
        steps_.pop_back();
        return model_.write(job, seed_, run, 0, true);
    }
    code = call("wait", [&] { step.wait(); });
    expect_ok("wait", code);
    model_.write(job, seed_, run, 0, code != Errc::ok);
}

/// The step goes to another file for a run, which was opened by a relative path.
void Program::visit_second(Step& step, Job const& job)
{
    auto const cwd = fs::current_path();
    auto options = options_;
    options.stage.reset();
    options.stage_drain.reset();
    std::optional<File> second;
    fs::current_path(directory_);
    auto code = call("open second", [&] { second.emplace(File::open(comm_, "second", Mode::create, options)); });
    EXPECT_EQ(code, Errc::ok);
    fs::current_path(cwd);
    if (code != Errc::ok) return;
    Model model;
    step.retarget(*second);
    auto const lost = std::exchange(name_lost_, false);
    move(step, job, *second, model, random_.pick(0, 5000));
    name_lost_ = lost;
    EXPECT_EQ(call("close second", [&] { second->close(); }), Errc::ok);
    step.retarget(*file_);
    if (me_ == 0) model.expect_in(contents(in("second")));
}

void Program::use()
{
    auto const declarations = random_.pick(1, 3);
    for (int d = 0; d < declarations && !abandoned_; ++d) {
        if (random_.chance(50)) interfere();
        auto const job = random_job(random_, n_);
        auto const code = call("declare", [&] {
            steps_.push_back(std::make_unique<Step>(file_->declare(pattern_of(job[static_cast<std::size_t>(me_)]))));
        });
        EXPECT_EQ(code, Errc::ok) << "declare";
        if (code != Errc::ok) return;
        auto& step = *steps_.back();
        auto const runs = random_.pick(0, 2);
        for (int i = 0; i < runs; ++i) {
            if (random_.chance(40)) interfere();
            move(step, job, *file_, model_, random_.pick(0, 3) * 1000);
        }
        if (!staged_ && random_.chance(20)) visit_second(step, job);
        if (random_.chance(20)) {
            auto const code_of_size = call("size", [&] {
                auto const size = file_->size();
                if (!model_.least) {
                    EXPECT_EQ(size, model_.bytes.size());
                }
            });
            expect_ok("size", code_of_size);
        }
        if (random_.chance(10)) expect_ok("sync", call("sync", [&] { file_->sync(); }));
        auto const mistake = random_.pick(1, 100);
        if (mistake <= 8 && mode_ != Mode::read && !staged_) {
            forget_wait(step, job);
        } else if (mistake <= 20) {  // finish() is never called, by ranks that supplied all, a part or nothing
            auto const who = random_.chance(50) ? -1 : somebody();
            bool const drop = random_.chance(50);
            static Bytes data(1 << 20);
            auto const mine = static_cast<std::size_t>(me_);
            if (who < 0 || who == me_) {
                auto const bytes = static_cast<std::size_t>(job[mine][0].bytes());
                mode_ == Mode::read ? step.read(0, std::span(data).first(bytes))
                                    : step.write(0, std::span(data).first(bytes));
            }
            forgotten_ = true;
            if (drop) steps_.pop_back();
        }
    }
}

void Program::end()
{
    bool const forget_close = !staged_ && !forgotten_ && options_.transport != "rma" && random_.chance(10);
    if (!forget_close) {
        auto const code = call("close", [&] { file_->close(); });
        if (forgotten_ || abandoned_)
            EXPECT_NE(code, Errc::ok) << "close: what was forgotten was not noticed";
        else
            expect_ok("close", code);
    }
    steps_.clear();
    file_.reset();
    meet();
    bool const in_log = staged_ && name_lost_;  // what could not be flushed
    if (me_ == 0 && !in_log) model_.expect_in(all_of(fd_));
    if (me_ == 0) expect_others_untouched();
    meet();
}

void Program::expect_others_untouched()
{
    EXPECT_TRUE(contents(in("other")) == stream(seed_ + 1, 5000)) << "another file was written";
    for (int r = 0; r < n_; ++r)
        EXPECT_TRUE(contents(in("elsewhere" + std::to_string(r) + "/target")) == stream(seed_ + 2, 3000))
            << "a file of another directory was written";
    if (!replacement_.empty()) {
        EXPECT_TRUE(contents(replacement_) == stream(seed_ + 3, 4000)) << "the file that took the name was written";
    }
    if (fs::exists(in("missing"))) {  // made by rank 0 where the others meant another
        EXPECT_EQ(fs::file_size(in("missing")), 0U);
    }
    for (auto const& entry : fs::directory_iterator(directory_))
        EXPECT_EQ(entry.path().string().find("probe"), std::string::npos) << "left behind: " << entry;
}

void Program::run()
{
    lay_out();
    open();
    if (all(file_.has_value())) {
        use();
        end();
    }
    fs::current_path(fs::path(directory_).parent_path());
}

TEST(Mistakes, AreErrorsOfAllRanksOrDoNoHarm)
{
    Scratch const scratch;
    auto const number = [](char const* name, int usual) {
        auto const* const wish = std::getenv(name);
        return wish ? std::atoi(wish) : usual;
    };
    auto const first = static_cast<std::uint64_t>(number("MISTAKES_SEED", 1));
    int const programs = number("MISTAKES", 60);
    int tried = 0;
    auto const before = fs::current_path();
    for (auto seed = first; tried < programs; ++tried, ++seed) {
        Random random(seed);
        auto const size = random.pick(1, ranks());
        bool const backwards = random.chance(30);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, rank() < size ? 0 : MPI_UNDEFINED, backwards ? -rank() : rank(), &comm);
        if (comm != MPI_COMM_NULL) {
            Program(comm, scratch.path("program"), seed).run();
            MPI_Comm_free(&comm);
        }
        if (on_all_ranks(!HasFailure())) continue;
        if (rank() == 0) std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
        break;
    }
    fs::current_path(before);
    if (rank() == 0) std::printf("programs tried: %d\n", tried);
}

}  // namespace
}  // namespace tapioca::test
