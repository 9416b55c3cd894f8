// parrot: a verb that the command does not have. It says what it is told.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "verb.hpp"

namespace tools {

extern constexpr Verb parrot = {.name = "parrot",
                                .uses =
                                    [] {
                                        return std::vector<Use>{{"WORD...", "says what it is told"}};
                                    },
                                .run =
                                    [](Words const& words) {
                                        if (words.empty()) return fail("parrot", "there is nothing to say");
                                        fmt::print("{}\n", fmt::join(words, " "));
                                        return 0;
                                    },
                                .examples = "  tapioca parrot pieces of eight\n"};

}  // namespace tools
