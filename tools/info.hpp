// tapioca info: what is known of this host, of a platform and of a directory's file system.
#pragma once

#include <string>
#include <vector>

/// `words` are the arguments after the verb. Returns the exit status.
int info(std::vector<std::string> const& words);
