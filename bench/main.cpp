// tapioca-bench: the MPI program behind `tapioca bench`, for one's own launcher.
#include "run.hpp"

int main(int argc, char** argv)
{
    return bench::run(argc, argv);
}
