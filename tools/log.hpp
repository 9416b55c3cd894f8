// tapioca log: looks at, checks, reads, recovers and discards the logs of staged files.
#pragma once

#include <string>
#include <vector>

int log(std::vector<std::string> const& words);
