// Each block contains a mistake that must not compile, and a similar line that must. misuse.sh tests them one by one.
#include <tapioca/stage.hpp>
#include <tapioca/tapioca.hpp>

#include <list>
#include <string>
#include <vector>

std::vector<double> make_vector();

void use(tapioca::Step& step, tapioca::Pattern& pattern, tapioca::Variable<double> u, tapioca::Options& options,
         tapioca::StagedRequest& request)
{
    std::vector<double> field(8);
    std::vector<float> floats(8);
    std::vector<std::string> words(8);
    std::vector<double> const constant(8);
    std::vector<std::byte> bytes(8);
    std::list<double> list(8);
    double plain[8] = {};
    (void)step, (void)pattern, (void)u, (void)words, (void)list, (void)plain, (void)constant, (void)floats;
    (void)options, (void)request;

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
    step.write(u, tapioca::interior(field, {10}, {1}));
    step.write(u, tapioca::interior(constant, {10}, {1}));
    step.write(0, tapioca::section(std::span(field), {.shape = {8}, .start = {0}, .count = {4}, .stride = {2}}));
    step.read(u, tapioca::interior(field, {10}, {1}, {1}));
    options.nbaggr = std::int64_t{4};
    options.nbaggr = 4;
    options.nbaggr_read = tapioca::AggregatorCount::poster;
    options.persistency = tapioca::Persistency::job;
    options.stage_mapping = tapioca::StageMapping::node;
    options.stage_sync = tapioca::StageSync::collective;
    options.strategy = "RANK_ORDER";
    (void)(request.bytes + request.rank);
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
#elif MISUSE == 18  // a word where there is a fixed set of values
    options.persistency = "job";
#elif MISUSE == 19
    options.stage_sync = "sometimes";
#elif MISUSE == 20
    options.stage_mapping = "node";
#elif MISUSE == 21  // a value of another set
    options.stage_mapping = tapioca::StageSync::write;
#elif MISUSE == 22  // the rules have no numbers
    int const number = tapioca::AggregatorCount::poster;
    (void)number;
#elif MISUSE == 23
    options.nbaggr = "poster";
#elif MISUSE == 24  // an enumeration is no number of aggregators
    options.nbaggr = tapioca::Direct::always;
#elif MISUSE == 25  // inside the library
    (void)request.found_;
#elif MISUSE == 26
    options.nbaggr = 2.5;
#elif MISUSE == 27  // nothing is left of a temporary
    step.write(u, tapioca::interior(make_vector(), {10}, {1}));
#elif MISUSE == 28
    step.read(u, tapioca::section(make_vector(), {.shape = {8}, .start = {0}, .count = {8}}));
#elif MISUSE == 29  // another type than was declared
    step.write(u, tapioca::interior(floats, {10}, {1}));
#elif MISUSE == 30  // nothing can be read into what is constant
    step.read(u, tapioca::interior(constant, {10}, {1}));
#elif MISUSE == 31
    step.read(0, tapioca::interior(constant, {10}, {1}));
#elif MISUSE == 32  // the bytes of a string are not its text
    step.write(0, tapioca::interior(words, {10}, {1}));
#else
#error "no such mistake"
#endif
}
