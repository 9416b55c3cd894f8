// soak_declared SEED PLACE TROUBLE DIRECTORY STAGE TIER: one job of the soak with the declared interface, as described
// in script.hpp. Every byte that is read is compared; soak_check compares the files.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <tapioca/tapioca.hpp>

#include "soak/witness.hpp"
#include "support/file_model.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::soak;

constexpr auto filler = std::byte{0x5a};

/// The fault of this job.
faults::Fault fault_of(Script const& script)
{
    test::Random random(script.luck);
    auto all = faults::all_faults();
    std::erase_if(all, [](auto const& f) { return f.kind == faults::Kind::truncate; });  // what others cut off is lost
    auto fault = random.one_of(all);
    using faults::Op;
    bool const often = fault.op == Op::write || fault.op == Op::read || fault.op == Op::room || fault.op == Op::look;
    fault.at = static_cast<int>(random.pick(1, fault.op == Op::memory ? 500 : often ? 12 : 4));
    return fault;
}

class OpenFile {
public:
    OpenFile(Witness& witness, MPI_Comm comm, Place place)
        : witness_(witness),
          comm_(comm),
          place_(place),
          script_(witness.script().rounds[place.round].files[place.file]),
          troubled_(witness.way().trouble == Way::Trouble::fault),
          fault_(troubled_ && is_moment())
    {
    }

    void open()
    {
        witness_.add(Counts::files, witness_.rank() == 0 ? 1 : 0);
        if (fault_) arm();
        auto const path = witness_.path(place_);
        auto info = witness_.hints(script_.hints);
        opened_ = call("open", 0, [&] { file_.emplace(File::open(comm_, path, Mode::create, {}, info)); });
        MPI_Info_free(&info);
        if (opened_) declare_all();
    }

    void run(std::size_t number)
    {
        if (!opened_ || number >= script_.calls.size()) return;
        auto const& call_now = script_.calls[number];
        place_.call = number;
        switch (call_now.kind) {
        case Call::Kind::write: write(call_now); break;
        case Call::Kind::read: read(call_now, number + 1); break;
        case Call::Kind::flush:
            (void)call("flush", number + 1, [&] { number % 2 == 0 ? file_->flush() : file_->drain(); });
            break;
        case Call::Kind::sync: (void)call("sync", number + 1, [&] { file_->sync(); }); break;
        case Call::Kind::size: size(number + 1); break;
        }
    }

    void close()
    {
        steps_.clear();
        bool const closed = opened_ && call("close", script_.calls.size() + 1, [&] { file_->close(); });
        file_.reset();
        if (fault_) disarm();
        if (closed && !fault_ && script_.reread) read_again();
    }

private:
    [[nodiscard]] bool is_moment() const
    {
        auto const& moment = witness_.script().moment;
        return moment.round == place_.round && moment.file == place_.file;
    }

    void arm()
    {
        auto const fault = fault_of(witness_.script());
        if (witness_.rank() == 0) {
            std::printf("fault %s, call %d on rank %d\n", describe(fault).c_str(), fault.at,
                        witness_.script().moment.rank);
            std::fflush(stdout);
            witness_.add(Counts::faults, 1);
        }
        faults::arm(witness_.script().moment.rank == witness_.rank() ? fault : faults::Fault{});
    }

    void disarm()
    {
        bool const fired = faults::disarm() > 0;
        if (!fired) return;
        witness_.add(Counts::came_true, 1);
        std::printf("came_true %s\n", describe(fault_of(witness_.script())).c_str());
        std::fflush(stdout);
    }

    void declare_all()
    {
        for (auto const& job : script_.patterns) {
            auto const pattern = test::pattern_of(job[witness_.me()]);
            auto& step = steps_.emplace_back();
            // Told apart by none: what was declared is not in the file.
            if (!call("declare", no_number, [&] { step.emplace(file_->declare(pattern)); })) step.reset();
        }
    }

    static constexpr std::size_t no_number = static_cast<std::size_t>(-1);

    /// A call of the library. With a fault, all ranks must hear the same, unless `local`; else it must succeed.
    template <class Body>
    bool call(char const* what, std::size_t number, Body const& body, bool local = false)
    {
        if (number != no_number) witness_.begin(place_, number);
        bool good = true;
        char text[1000] = "";
        {
            faults::Inside const inside;
            try {
                body();
            } catch (std::exception const& error) {
                good = false;
                std::snprintf(text, sizeof text, "%s%s",
                              dynamic_cast<Error const*>(&error) ? "" : "not an Error: ", error.what());
            }
        }
        if (number != no_number) witness_.end(place_, number, good);
        if (!good && !fault_) witness_.give_up(std::string(what) + ": " + text);
        if (fault_ && !local) agree(what, text);
        if (!good && fault_ && witness_.rank() == 0) witness_.add(Counts::errors, 1);
        return good;
    }

    void agree(char const* what, char const* text)
    {
        char theirs[1000];
        std::snprintf(theirs, sizeof theirs, "%s", text);
        MPI_Bcast(theirs, sizeof theirs, MPI_CHAR, 0, MPI_COMM_WORLD);
        int same = std::strcmp(theirs, text) == 0 ? 1 : 0;
        if (!same) std::fprintf(stderr, "%s: rank %d: '%s', rank 0: '%s'\n", what, witness_.rank(), text, theirs);
        MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!same) witness_.give_up(std::string(what) + ": not the same error on all ranks");
    }

    void move(Call const& now)
    {
        auto& step = *steps_[now.pattern];
        if (now.background) {
            step.start();
            (void)step.progress();
            (void)step.wait();
        } else {
            (void)step.finish();
        }
    }

    void write(Call const& now)
    {
        if (!steps_[now.pattern]) return;
        auto const data = written_by(witness_.way(), witness_.script(), place_, witness_.me());
        bool const good = call(
            "write", place_.call + 1,
            [&] {
                auto& step = *steps_[now.pattern];
                step.rebase(now.base);
                for (std::size_t v = 0; v < data.size(); ++v) step.write(v, data[v]);
                move(now);
            },
            witness_.script().staged);
        std::vector<int> all(static_cast<std::size_t>(witness_.way().ranks), good ? 1 : 0);
        int const mine = good ? 1 : 0;
        if (fault_) MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (auto const& part : data) witness_.add(Counts::written, good ? static_cast<long>(part.size()) : 0);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            auto const theirs = written_by(witness_.way(), witness_.script(), place_, rank);
            for (std::size_t v = 0; v < theirs.size(); ++v) {
                auto const& variable = script_.patterns[now.pattern][rank][v];
                all[rank] ? model_.write(now.base, variable, theirs[v]) : model_.begin(now.base, variable, theirs[v]);
            }
        }
    }

    void read(Call const& now, std::size_t number)
    {
        if (!steps_[now.pattern]) return;
        auto const& variables = script_.patterns[now.pattern][witness_.me()];
        std::vector<Bytes> data;
        for (auto const& variable : variables) data.emplace_back(static_cast<std::size_t>(variable.bytes()), filler);
        bool const good = call("read", number, [&] {
            auto& step = *steps_[now.pattern];
            step.rebase(now.base);
            for (std::size_t v = 0; v < data.size(); ++v) step.read(v, data[v]);
            move(now);
        });
        if (!good) return;
        for (std::size_t v = 0; v < data.size(); ++v)
            judge(now, variables[v], data[v], steps_[now.pattern]->received(v));
    }

    void judge(Call const& now, Declared const& variable, Bytes const& data, std::uint64_t received)
    {
        witness_.add(Counts::read, static_cast<long>(received));
        if (model_.certain()) {
            std::uint64_t wanted = 0;
            auto const right = test::gather(model_.image(), now.base, variable, filler, wanted);
            if (received != wanted)
                witness_.complain(Counts::mismatches, where() + ": " + std::to_string(received) + " bytes read of " +
                                                          std::to_string(wanted));
            auto const wrong = std::mismatch(data.begin(), data.end(), right.begin()).first;
            if (wrong != data.end())
                witness_.complain(Counts::mismatches,
                                  where() + ": byte " + std::to_string(wrong - data.begin()) + " read is wrong");
            return;
        }
        std::size_t from = 0;
        for (auto const& [offset, length] : variable.extents)
            for (auto at = now.base + offset; at < now.base + offset + length; ++at, ++from)
                if (!model_.allows(static_cast<std::size_t>(at), data[from]) && data[from] != filler)
                    return witness_.complain(Counts::mismatches,
                                             where() + ": byte " + std::to_string(from) + " is neither old nor new");
    }

    void size(std::size_t number)
    {
        std::uint64_t bytes = 0;
        bool const good = call("size", number, [&] { bytes = file_->size(); });
        if (good && model_.certain() && bytes != model_.image().size())
            witness_.complain(Counts::mismatches, where() + ": size " + std::to_string(bytes) + " in place of " +
                                                      std::to_string(model_.image().size()));
    }

    /// Through another handle: all that was written is there.
    void read_again()
    {
        auto info = witness_.hints(script_.hints);
        auto const path = witness_.path(place_);
        (void)call("open to read", no_number, [&] { file_.emplace(File::open(comm_, path, Mode::read, {}, info)); });
        MPI_Info_free(&info);
        declare_all();
        for (auto const& now : script_.calls)
            if (now.kind == Call::Kind::write) read(now, no_number);
        steps_.clear();
        (void)call("close", no_number, [&] { file_->close(); });
        file_.reset();
    }

    [[nodiscard]] std::string where() const
    {
        return file_name(place_.round, place_.file) + ", call " + std::to_string(place_.call);
    }

    Witness& witness_;
    MPI_Comm comm_;
    Place place_;
    FileScript const& script_;
    bool troubled_;
    bool fault_;  ///< this is the file with the fault
    bool opened_ = false;
    std::optional<File> file_;
    std::vector<std::optional<Step>> steps_;
    test::FileModel model_;
};

/// Every rank once for itself, so that what a process keeps for good, such as the names of tiers it has seen, is there.
void run_alone(Witness& witness)
{
    auto info = witness.hints();
    MPI_Info_set(info, "tapioca_direct", "never");
    auto const path = witness.path({}) + "-alone-" + std::to_string(witness.rank());
    try {
        auto file = File::open(MPI_COMM_SELF, path, Mode::create, {}, info);
        Pattern pattern;
        pattern.add({{0, 100}, {200, 100}});
        auto step = file.declare(pattern);
        Bytes data(200, filler);
        step.write(0, data);
        step.start();  // with the thread that does I/O
        step.wait();
        step.read(0, data);
        step.finish();
        file.close();
    } catch (Error const& error) {
        witness.give_up(error.what());
    }
    MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    bool good = false;
    {
        Witness witness(argc, argv, "declared");
        faults::set_stall(0.05);
        run_alone(witness);
        witness.run([&](std::size_t round) { run_round<OpenFile>(witness, round); });
        good = witness.close();
    }
    MPI_Finalize();
    return good ? 0 : 1;
}
