// soak_mpiio SEED PLACE TROUBLE DIRECTORY STAGE TIER: the same as soak_declared in a program that uses only MPI, for
// the drop-in library. A variable is a file view and a collective call.
#include <mpi.h>

#include <cstdio>
#include <memory>

#include "soak/witness.hpp"
#include "support/file_model.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::soak;

constexpr auto filler = std::byte{0x5a};

class OpenFile {
public:
    OpenFile(Witness& witness, MPI_Comm comm, Place place)
        : witness_(witness), comm_(comm), place_(place), script_(witness.script().rounds[place.round].files[place.file])
    {
    }

    void open()
    {
        witness_.add(Counts::files, witness_.rank() == 0 ? 1 : 0);
        witness_.begin(place_, 0);
        open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
        witness_.end(place_, 0, true);
    }

    void run(std::size_t number)
    {
        if (number >= script_.calls.size()) return;
        auto const& now = script_.calls[number];
        place_.call = number;
        witness_.begin(place_, number + 1);
        switch (now.kind) {
        case Call::Kind::write: write(now); break;
        case Call::Kind::read: read(now); break;
        default: check(MPI_File_sync(file_), "sync"); break;
        }
        witness_.end(place_, number + 1, true);
    }

    void close()
    {
        witness_.begin(place_, script_.calls.size() + 1);
        check(MPI_File_close(&file_), "close");
        witness_.end(place_, script_.calls.size() + 1, true);
        if (!script_.reread) return;
        open_as(MPI_MODE_RDONLY);
        for (auto const& now : script_.calls)
            if (now.kind == Call::Kind::write) read(now);
        check(MPI_File_close(&file_), "close");
    }

private:
    void open_as(int mode)
    {
        auto info = witness_.hints(script_.hints);
        check(MPI_File_open(comm_, witness_.path(place_).c_str(), mode, info, &file_), "open");
        MPI_Info_free(&info);
    }

    void check(int code, char const* what)
    {
        if (code == MPI_SUCCESS) return;
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        witness_.give_up(where() + ": " + what + ": " + text);
    }

    /// Sets the view of a variable: its extents, or all of the file where it is contiguous on all ranks. The offset to
    /// pass.
    MPI_Offset set_view(Call const& now, std::size_t v)
    {
        auto const& job = script_.patterns[now.pattern];
        auto const& extents = job[witness_.me()][v].extents;
        bool contiguous = place_.call % 2 == 0;
        for (auto const& variables : job) contiguous = contiguous && variables[v].extents.size() <= 1;
        MPI_Datatype type = MPI_BYTE;
        if (!contiguous && !extents.empty()) {
            std::vector<int> lengths;
            std::vector<MPI_Aint> offsets;
            for (auto const& extent : extents) {
                lengths.push_back(static_cast<int>(extent.length));
                offsets.push_back(now.base + extent.offset);
            }
            MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), offsets.data(), MPI_BYTE, &type);
            MPI_Type_commit(&type);
        }
        check(MPI_File_set_view(file_, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
        if (type != MPI_BYTE) MPI_Type_free(&type);
        return contiguous && !extents.empty() ? now.base + extents[0].offset : 0;
    }

    void write(Call const& now)
    {
        auto data = written_by(witness_.way(), witness_.script(), place_, witness_.me());
        for (std::size_t v = 0; v < data.size(); ++v) {
            auto const at = set_view(now, v);
            auto const bytes = static_cast<int>(data[v].size());
            if (now.background) {
                check(MPI_File_write_at_all_begin(file_, at, data[v].data(), bytes, MPI_BYTE), "write_at_all_begin");
                check(MPI_File_write_at_all_end(file_, data[v].data(), MPI_STATUS_IGNORE), "write_at_all_end");
            } else if (at == 0 && place_.call % 2 == 1) {
                check(MPI_File_write_all(file_, data[v].data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write_all");
            } else {
                check(MPI_File_write_at_all(file_, at, data[v].data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                      "write_at_all");
            }
            witness_.add(Counts::written, bytes);
        }
        auto const ranks = static_cast<std::size_t>(witness_.way().ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            auto const theirs = written_by(witness_.way(), witness_.script(), place_, rank);
            for (std::size_t v = 0; v < theirs.size(); ++v)
                test::apply(image_, now.base, script_.patterns[now.pattern][rank][v], theirs[v]);
        }
    }

    void read(Call const& now)
    {
        auto const& variables = script_.patterns[now.pattern][witness_.me()];
        for (std::size_t v = 0; v < variables.size(); ++v) {
            auto const at = set_view(now, v);
            auto const bytes = static_cast<int>(variables[v].bytes());
            Bytes data(static_cast<std::size_t>(bytes), filler);
            MPI_Status status;
            if (now.background) {
                check(MPI_File_read_at_all_begin(file_, at, data.data(), bytes, MPI_BYTE), "read_at_all_begin");
                check(MPI_File_read_at_all_end(file_, data.data(), &status), "read_at_all_end");
            } else {
                check(MPI_File_read_at_all(file_, at, data.data(), bytes, MPI_BYTE, &status), "read_at_all");
            }
            int received = 0;
            MPI_Get_count(&status, MPI_BYTE, &received);
            judge(now, variables[v], data, received);
        }
    }

    void judge(Call const& now, Declared const& variable, Bytes const& data, int received)
    {
        std::uint64_t wanted = 0;
        auto const right = test::gather(image_, now.base, variable, filler, wanted);
        witness_.add(Counts::read, static_cast<long>(wanted));
        if (static_cast<std::uint64_t>(received) != wanted)
            witness_.complain(Counts::mismatches,
                              where() + ": " + std::to_string(received) + " bytes read of " + std::to_string(wanted));
        auto const wrong =
            std::mismatch(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(wanted), right.begin()).first;
        if (wrong != data.begin() + static_cast<std::ptrdiff_t>(wanted))
            witness_.complain(Counts::mismatches,
                              where() + ": byte " + std::to_string(wrong - data.begin()) + " read is wrong");
    }

    [[nodiscard]] std::string where() const
    {
        return file_name(place_.round, place_.file) + ", call " + std::to_string(place_.call);
    }

    Witness& witness_;
    MPI_Comm comm_;
    Place place_;
    FileScript const& script_;
    MPI_File file_ = MPI_FILE_NULL;
    Bytes image_;
};

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    bool good = false;
    {
        Witness witness(argc, argv, "dropin");
        witness.run([&](std::size_t round) { run_round<OpenFile>(witness, round); });
        good = witness.close();
    }
    MPI_Finalize();
    return good ? 0 : 1;
}
