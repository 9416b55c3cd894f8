// Every C++ header of TAPIOCA includes this one first, so that a compiler without C++20 prints this line before all
// errors that follow from it.
#pragma once

#if __cplusplus < 202002L
#error "TAPIOCA's C++ interface needs C++20: compile with -std=c++20, or use <tapioca/tapioca.h>"
#endif
