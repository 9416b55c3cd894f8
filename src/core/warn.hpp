// Warnings: one line on stderr, for what a program should know but need not handle.
#pragma once

#include <cstdio>
#include <string>

namespace tapioca::core {

inline void warn(std::string const& text)
{
    std::fprintf(stderr, "tapioca: %s\n", text.c_str());
}

}  // namespace tapioca::core
