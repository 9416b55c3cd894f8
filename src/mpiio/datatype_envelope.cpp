#include "mpiio/datatype_envelope.hpp"

#include <map>
#include <utility>

#include <dlfcn.h>

namespace tapioca::mpiio {

namespace {

// The constructors with displacements as Fortran integers, which MPI-3 removed but MPI libraries still know. The number
// of each is one less than that of the constructor that replaced it.
constexpr int hvector_integer = MPI_COMBINER_HVECTOR - 1;
constexpr int hindexed_integer = MPI_COMBINER_HINDEXED - 1;
constexpr int struct_integer = MPI_COMBINER_STRUCT - 1;

struct Envelope {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    int combiner = MPI_COMBINER_NAMED;
};

#if MPI_VERSION >= 4
// The functions with large counts, which MPI libraries with MPICH's ABI may lack.
template <class Function>
Function find_function(char const* name)
{
    return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}
auto const get_envelope_c = find_function<decltype(&PMPI_Type_get_envelope_c)>("PMPI_Type_get_envelope_c");
auto const get_contents_c = find_function<decltype(&PMPI_Type_get_contents_c)>("PMPI_Type_get_contents_c");
#endif

int ask(MPI_Datatype type, Envelope& e)
{
#if MPI_VERSION >= 4
    if (get_envelope_c && get_contents_c)
        return get_envelope_c(type, &e.integers, &e.addresses, &e.counts, &e.types, &e.combiner);
#endif
    int integers = 0;
    int addresses = 0;
    int types = 0;
    auto const code = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &e.combiner);
    e.integers = integers;
    e.addresses = addresses;
    e.types = types;
    return code;
}

int tell(MPI_Datatype type, Envelope const& e, int* integers, MPI_Aint* addresses, [[maybe_unused]] MPI_Count* counts,
         MPI_Datatype* types)
{
#if MPI_VERSION >= 4
    if (get_envelope_c && get_contents_c)
        return get_contents_c(type, e.integers, e.addresses, e.counts, e.types, integers, addresses, counts, types);
#endif
    return PMPI_Type_get_contents(type, static_cast<int>(e.integers), static_cast<int>(e.addresses),
                                  static_cast<int>(e.types), integers, addresses, types);
}

bool is_predefined(int combiner)
{
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/// Moves the numbers from `at` on to the addresses.
void split(DatatypeEnvelope& contents, std::int64_t at)
{
    auto const first = contents.integers.begin() + at;
    contents.addresses.assign(first, contents.integers.end());
    contents.integers.erase(first, contents.integers.end());
}

/// How many of a constructor's numbers come before its displacements, if all are in one sequence.
std::int64_t before_displacements(int combiner, std::vector<std::int64_t> const& numbers)
{
    if (combiner == MPI_COMBINER_HVECTOR || combiner == MPI_COMBINER_HINDEXED_BLOCK) return 2;
    if (combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_STRUCT) return numbers.at(0) + 1;
    if (combiner == MPI_COMBINER_RESIZED) return 0;
    return static_cast<std::int64_t>(numbers.size());
}

void unify_removed_forms(DatatypeEnvelope& contents)
{
    auto& combiner = contents.combiner;
    if (combiner == hvector_integer)
        combiner = MPI_COMBINER_HVECTOR;
    else if (combiner == hindexed_integer)
        combiner = MPI_COMBINER_HINDEXED;
    else if (combiner == struct_integer)
        combiner = MPI_COMBINER_STRUCT;
    else
        return;
    split(contents, before_displacements(combiner, contents.integers));
}

/// For types made with large counts: only numbers that are not counts are among the integers.
void unify_large_form(DatatypeEnvelope& contents, std::vector<std::int64_t> const& counts)
{
    auto& integers = contents.integers;
    std::int64_t at = 0;
    if (contents.combiner == MPI_COMBINER_SUBARRAY) at = 1;
    if (contents.combiner == MPI_COMBINER_DARRAY) at = 3;
    integers.insert(integers.begin() + at, counts.begin(), counts.end());
    split(contents, before_displacements(contents.combiner, integers));
}

}  // namespace

bool predefined(MPI_Datatype type)
{
    Envelope envelope;
    return ask(type, envelope) != MPI_SUCCESS || is_predefined(envelope.combiner);
}

DatatypeEnvelope::DatatypeEnvelope(DatatypeEnvelope&& other) noexcept
    : combiner(other.combiner),
      integers(std::move(other.integers)),
      addresses(std::move(other.addresses)),
      types(std::exchange(other.types, {}))
{
}

DatatypeEnvelope::~DatatypeEnvelope()
{
    std::map<MPI_Datatype, bool> keep;
    for (auto type : types) {
        auto const [at, is_new] = keep.try_emplace(type, false);
        if (is_new) at->second = predefined(type);
        if (!at->second) PMPI_Type_free(&type);
    }
}

core::Result<DatatypeEnvelope> contents_of(MPI_Datatype type)
{
    Envelope envelope;
    DatatypeEnvelope contents;
    auto const failed = [] { return core::fail(Errc::unsupported, "MPI does not tell how a datatype was made"); };
    if (ask(type, envelope) != MPI_SUCCESS) return failed();
    contents.combiner = envelope.combiner;
    if (is_predefined(envelope.combiner)) return contents;

    std::vector<int> integers(static_cast<std::size_t>(envelope.integers));
    std::vector<MPI_Aint> addresses(static_cast<std::size_t>(envelope.addresses));
    std::vector<MPI_Datatype> types(static_cast<std::size_t>(envelope.types));
    std::vector<MPI_Count> counts(static_cast<std::size_t>(envelope.counts));
    if (tell(type, envelope, integers.data(), addresses.data(), counts.data(), types.data()) != MPI_SUCCESS)
        return failed();
    contents.types = std::move(types);
    contents.integers.assign(integers.begin(), integers.end());
    contents.addresses.assign(addresses.begin(), addresses.end());
    if (!counts.empty()) unify_large_form(contents, {counts.begin(), counts.end()});
    unify_removed_forms(contents);
    return contents;
}

bool is_simple(MPI_Datatype type)
{
    constexpr int deepest = 2;
    auto const simple = [](auto const& self, MPI_Datatype one, int depth) -> bool {
        auto const contents = contents_of(one);
        if (!contents) return false;
        if (contents->combiner == MPI_COMBINER_NAMED) return true;
        bool const known = contents->combiner == MPI_COMBINER_CONTIGUOUS || contents->combiner == MPI_COMBINER_VECTOR ||
                           contents->combiner == MPI_COMBINER_SUBARRAY || contents->combiner == MPI_COMBINER_DUP;
        return known && depth < deepest && contents->types.size() == 1 && self(self, contents->types[0], depth + 1);
    };
    return simple(simple, type, 0);
}

}  // namespace tapioca::mpiio
