// Each block contains a mistake that must not compile, and a similar line that must. misuse.sh tests them one by one.
#include <tapioca/tapioca.hpp>

#include <list>
#include <string>
#include <vector>

std::vector<double> make_vector();

void use(tapioca::Step& step, tapioca::Pattern& pattern, tapioca::Variable<double> u)
{
    std::vector<double> field(8);
    std::vector<float> floats(8);
    std::vector<std::string> words(8);
    std::vector<double> const constant(8);
    std::vector<std::byte> bytes(8);
    std::list<double> list(8);
    double plain[8] = {};
    (void)step, (void)pattern, (void)u, (void)words, (void)list, (void)plain, (void)constant, (void)floats;

#if MISUSE == 0  // what is right
    step.write(0, field);
    step.write(u, field);
    step.write(u, constant);
    step.write(0, std::span(field));
    step.write(0, std::span<double const>(field));
    step.write(0, plain);
    step.write(0, bytes);
    step.write(0, std::as_bytes(std::span(field)));
    step.read(u, field);
    step.read(u, std::span(field));
    step.read(0, std::span<double>(field).subspan(2));
    step.read(0, plain);
    step.read(0, std::as_writable_bytes(std::span(field)));
    (void)pattern.add<double>("u", tapioca::block_of({.shape = {8, 8}, .ranks = 4, .rank = 0}));
    (void)pattern.add<float>("f", {{0, 4}});
#elif MISUSE == 1  // nothing is left of a temporary when the step runs
    step.write(0, make_vector());
#elif MISUSE == 2
    step.write(u, make_vector());
#elif MISUSE == 3
    step.read(0, make_vector());
#elif MISUSE == 4
    step.write(0, std::vector<std::byte>(8));
#elif MISUSE == 5  // the bytes of a string are not its text
    step.write(0, words);
#elif MISUSE == 6
    step.read(0, words);
#elif MISUSE == 7  // another type than was declared
    step.write(u, floats);
#elif MISUSE == 8
    step.read(u, floats);
#elif MISUSE == 9  // nothing can be read into what is constant
    step.read(u, constant);
#elif MISUSE == 10
    step.read(0, std::span<double const>(field));
#elif MISUSE == 11  // not contiguous
    step.write(0, list);
#elif MISUSE == 12  // the order of numbers is easily swapped
    (void)tapioca::block_of(std::vector<std::int64_t>{8, 8}, 0, 4, 8);
#elif MISUSE == 13  // a pointer is no value
    (void)pattern.add<double*>("p", {{0, 8}});
#elif MISUSE == 14
    (void)pattern.add<std::string>("s", {{0, 8}});
#elif MISUSE == 15  // inside the library
    (void)pattern.all();
#elif MISUSE == 16  // a variable comes from a pattern
    step.write(tapioca::Variable<double>(0), field);
#elif MISUSE == 17
    step.write(0, {1.0, 2.0});
#else
#error "no such mistake"
#endif
}
