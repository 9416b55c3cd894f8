// The name of this host, for messages.
#pragma once

#include <string>

#include <unistd.h>

namespace tapioca::core {

inline std::string host_name()
{
    char name[64] = {};
    (void)::gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace tapioca::core
