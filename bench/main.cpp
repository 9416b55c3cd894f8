// tapioca-bench: the MPI program behind `tapioca bench`, which can also be started with any launcher.
#include "run.hpp"

int main(int argc, char** argv)
{
    return bench::run(argc, argv);
}
