// What earlier jobs have learnt: any file is either understood line by line or refused in one line, and what was
// written is read back unchanged.
#include "fuzz/fuzz.hpp"
#include "machine/learnt.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string const text(reinterpret_cast<char const*>(data), size);
    auto const learnt = machine::Learnt::parse(text);
    if (!learnt) {
        claim(learnt.error().text.find('\n') == std::string::npos, "a failure of one line");
        return 0;
    }
    // The same text behind a finding of ours: that is there, and no more is damaged than before.
    machine::Learnt::Lesson const way{3, 65536, 2.5e-10};
    auto const more =
        machine::Learnt::parse(machine::Learnt::first_line() + machine::Learnt::line("a key", way) + text);
    claim(more.has_value(), "a file with a first line is read");
    claim(more->damaged() == learnt->damaged(), "the same lines are damaged");
    if (!learnt->find("a key")) claim(more->find("a key") == way, "what was written is read the same");
    return 0;
}
