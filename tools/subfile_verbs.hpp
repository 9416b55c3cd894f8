// The verbs of `tapioca subfile`, one .cpp each, and what several of them use.
#pragma once

#include <nlohmann/json.hpp>

#include "sub_verbs.hpp"
#include "subfile_look.hpp"

namespace tools {

using Json = nlohmann::ordered_json;

// Each takes the words after it, and returns the exit status.
int list_sets(Words const& words);
int verify_set(Words const& words);
int join_set(Words const& words);
int split_file(Words const& words);
int recover_subfiles(Words const& words);

}  // namespace tools
