// The stub of a set of subfiles: anything, or a text with changes whose checksum fits.
//
// The input: 'S', a directory's name up to a line end, then changes: a place and a byte; or the file as it is.
#include <fmt/core.h>

#include "fuzz/fuzz.hpp"
#include "fuzz/scratch.hpp"
#include "stage/checksum.hpp"
#include "subfile/stub.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;

void read(std::string const& text)
{
    auto const stub = subfile::parse_stub(text);
    if (!stub) return fuzz::claim_one_line(stub.error());
    if (!*stub) return;
    auto const& directory = (*stub)->directory;
    claim(directory.find('/') == std::string::npos && directory.find('\0') == std::string::npos && directory != ".." &&
              directory.size() <= 255,
          "it leads to something beside the stub", directory);
    auto const again = subfile::parse_stub(subfile::to_text(**stub));
    claim(again && *again && (*again)->directory == directory && (*again)->identity == (*stub)->identity,
          "written again, it is read the same", directory);
    auto const& scratch = fuzz::scratch();
    scratch.write("stub", std::as_bytes(std::span(text)));
    auto const found = subfile::find_stub(scratch.path() + "/stub");
    claim(found && *found && (*found)->directory == directory, "it is found as a file", directory);
}

std::string seal(std::string text)
{
    auto const line = text.size() - 27;
    auto const begin = subfile::beginning_bytes + 1;
    auto const sum = stage::checksum_of(text.data() + begin, line - begin);
    return text.replace(line, 27, fmt::format("checksum: {:016x}\n", sum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    fuzz::Input input(data, size);
    if (size > 0 && data[0] == 'S') {
        (void)input.take<std::uint8_t>();
        auto text = subfile::to_text({{}, std::string(input.until('\n').substr(0, 300))});
        while (!input.empty()) text[input.take<std::uint16_t>() % text.size()] = input.take<char>();
        read(text);
        read(seal(text));
    } else {
        std::string text(input.all());
        read(text);
        text.resize(subfile::stub_bytes, '\n');
        read(text);
        auto const name = subfile::directory_name("/" + std::string(reinterpret_cast<char const*>(data), size));
        claim(name.size() <= 255 && name.find('/') == std::string::npos && name.find('\n') == std::string::npos,
              "a file's directory has a name", name);
    }
    return 0;
}
