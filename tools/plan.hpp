// tapioca plan: the plan of a job that does not run, as text, JSON or a picture.
#pragma once

#include <string>
#include <vector>

/// `words` are the arguments after the verb. Returns the exit status.
int plan(std::vector<std::string> const& words);
