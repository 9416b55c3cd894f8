// Method: one way to move a workload. The benchmark calls all of them with the same sequence.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workload.hpp"

namespace bench {

using Buffers = std::vector<std::vector<std::byte>>;

class Method {
public:
    virtual ~Method() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// True if the rank's bytes lie in one contiguous piece at its rank_offset instead of where the workload says.
    [[nodiscard]] virtual bool contiguous() const { return false; }
    /// Opens a file and does whatever precedes the first step. Collective, like all of these.
    virtual void open(std::string const& path, bool writing) = 0;
    /// Moves step number `step`, steps following each other in the file.
    virtual void move(int step, Buffers& buffers) = 0;
    virtual void sync() = 0;
    virtual void close() = 0;
};

/// MPI-IO through the drop-in library.
inline constexpr char const* dropin_suffix = "-dropin";

/// "tapioca", "collective", "independent" (both also with dropin_suffix) or "limit", which makes calls of at most
/// `limit_call` bytes (0: the whole piece). Throws std::runtime_error for another name.
std::unique_ptr<Method> make_method(std::string const& name, MPI_Comm comm, Workload const& workload,
                                    std::int64_t limit_call);
std::vector<std::string> const& method_names();
/// Each MPI-IO method twice.
std::vector<std::string> with_dropin(std::vector<std::string> const& methods);
/// Whether the drop-in library was loaded into this process. Local; makes a file in `directory` for a moment.
bool dropin_is_loaded(std::string const& directory);
/// Seconds to open and close a file that nobody uses. Collective.
double open_and_close(MPI_Comm comm, std::string const& path, bool through);

/// What declaring cost TAPIOCA on this rank, untimed by the benchmark itself.
struct Declaration {
    double seconds = 0;
    std::uint64_t bookkeeping_bytes = 0;
};
Declaration const* declaration_of(Method const& method);

}  // namespace bench
