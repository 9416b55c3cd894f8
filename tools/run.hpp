// tapioca run: starts a program that uses MPI-IO with TAPIOCA loaded into its ranks.
#pragma once

#include <string>
#include <vector>

int run(std::vector<std::string> const& words);
