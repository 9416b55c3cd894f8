// The first thing that every C++ header of TAPIOCA includes: what is missing is one line, before what follows from it.
#pragma once

#if __cplusplus < 202002L
#error "TAPIOCA's C++ interface needs C++20: compile with -std=c++20, or use <tapioca/tapioca.h>"
#endif
