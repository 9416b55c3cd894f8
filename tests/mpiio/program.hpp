// What the programs that use only MPI have in common.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

inline int rank = 0;
inline int ranks = 1;

inline void require(bool condition, std::string const& what)
{
    if (condition) return;
    std::fprintf(stderr, "[rank %d] FAILED: %s\n", rank, what.c_str());
    std::abort();
}

inline void right(int code, std::string const& what)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    require(false, what + ": " + text);
}

inline int class_of(int code)
{
    int result = MPI_SUCCESS;
    MPI_Error_class(code, &result);
    return result;
}

inline void say(std::string const& text)
{
    if (rank != 0) return;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}
