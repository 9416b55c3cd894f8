// The example of docs/memory.md: keeps a field on a local SSD, where the next program finds it. Run it twice: the first
// run allocates the field, the second one finds it and frees it.
#include <tapioca/memory.hpp>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv)
{
    std::string const tier = argc > 1 ? argv[1] : "ssd:/tmp";
    try {
        auto const traits = tapioca::Memory::traits(tier);
        std::printf("%s: %.0f GB free, writes %.1f GB/s\n", traits.tier.c_str(),
                    static_cast<double>(traits.capacity_bytes) / 1e9, traits.write_bandwidth / 1e9);
        std::vector<double> temperature(1000, 20.5);
        try {
            auto field = tapioca::Memory::allocate(tier, "temperature", temperature.size() * sizeof(double));
            field.write(0, temperature);
            field.flush();  // on an SSD: from now on, it also survives a crash of the machine
            std::puts("allocated");
        } catch (tapioca::Error const& error) {
            if (error.sys_errno() != EEXIST) throw;
            auto field = tapioca::Memory::attach(tier, "temperature");
            field.read(0, temperature);
            std::printf("found: %.1f degrees\n", temperature.back());
            field.free();
        }
    } catch (tapioca::Error const& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
