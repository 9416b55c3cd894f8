// Every rank writes "rank N" and a newline, through the installed library.
#include <tapioca/tapioca.hpp>

#include <iostream>
#include <string>

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int result = 0;
    try {
        auto const text = "rank " + std::to_string(rank % 10) + "\n";
        auto file = tapioca::File::open(MPI_COMM_WORLD, argv[1], tapioca::Mode::create);
        tapioca::Pattern pattern;
        pattern.add({{rank * 7, 7}});
        auto step = file.declare(pattern);
        step.write(0, text);
        step.finish();
        file.close();
    } catch (tapioca::Error const& error) {
        std::cerr << error.what() << '\n';
        result = 1;
    }
    MPI_Finalize();
    return result;
}
