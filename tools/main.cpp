// tapioca: the command.
#include "verb.hpp"

int main(int argc, char** argv)
{
    return tools::command({argv + 1, argv + argc});
}
