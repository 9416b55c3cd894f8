// soak_check SEED RANKS INTERFACE PLACE TROUBLE DIRECTORY: checks that the files of a soak job are what its calls have
// written. If a call failed or did not return, its bytes may be there or not. Prints how many files had been opened and
// how many bytes were compared.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "soak/script.hpp"
#include "support/file_model.hpp"

namespace {

using namespace tapioca::soak;
using tapioca::test::FileModel;

/// What became of calls, by round, file and number: begun, returned or failed.
using Progress = std::map<std::tuple<std::size_t, std::size_t, std::size_t>, char>;

Progress progress_of(std::string const& directory, std::size_t rank)
{
    Progress progress;
    std::ifstream in(directory + "/progress." + std::to_string(rank));
    char what = 0;
    std::size_t round = 0, file = 0, number = 0;
    while (in >> what >> round >> file >> number) progress[{round, file, number}] = what;
    return progress;
}

char what_became(Progress const& progress, Place const& place, std::size_t number)
{
    auto const found = progress.find({place.round, place.file, number});
    return found == progress.end() ? '-' : found->second;
}

FileModel model_of(Way const& way, Script const& script, Place place, std::vector<Progress> const& progress)
{
    FileModel model;
    auto const& file = script.rounds[place.round].files[place.file];
    for (place.call = 0; place.call < file.calls.size(); ++place.call) {
        auto const& call = file.calls[place.call];
        if (call.kind != Call::Kind::write) continue;
        for (std::size_t rank = 0; rank < progress.size(); ++rank) {
            auto const became = what_became(progress[rank], place, place.call + 1);
            if (became == '-') continue;
            auto const data = written_by(way, script, place, rank);
            for (std::size_t v = 0; v < data.size(); ++v) {
                auto const& variable = file.patterns[call.pattern][rank][v];
                became == 'r' ? model.write(call.base, variable, data[v]) : model.begin(call.base, variable, data[v]);
            }
        }
    }
    return model;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 7) return 2;
    auto const ranks = static_cast<std::size_t>(std::atoi(argv[2]));
    auto const way = way_of(std::strtoull(argv[1], nullptr, 10), static_cast<int>(ranks), argv[3], argv[4], argv[5]);
    std::string const directory = argv[6];
    auto const script = script_of(way, "", "");
    std::vector<Progress> progress;
    for (std::size_t rank = 0; rank < ranks; ++rank) progress.push_back(progress_of(directory, rank));
    std::size_t files = 0, compared = 0, wrong = 0;
    for (Place place; place.round < script.rounds.size(); ++place.round)
        for (place.file = 0; place.file < script.rounds[place.round].files.size(); ++place.file) {
            auto const model = model_of(way, script, place, progress);
            auto const file = tapioca::test::contents(directory + "/" + file_name(place.round, place.file));
            auto const at = model.first_wrong(file);
            compared += file.size();
            files += what_became(progress[0], place, 0) == '-' ? 0 : 1;
            if (at < 0) continue;
            ++wrong;
            std::fprintf(stderr, "WRONG %s: byte %lld of %zu cannot be what it is\n",
                         file_name(place.round, place.file).c_str(), static_cast<long long>(at), file.size());
        }
    std::printf("checked files=%zu bytes=%zu\n", files, compared);
    return wrong == 0 ? 0 : 1;
}
