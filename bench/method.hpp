// Method: one way to move a workload. The benchmark makes the same sequence of calls for each.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workload.hpp"

namespace bench {

using VariableBuffers = std::vector<std::vector<std::byte>>;

/// What declaring cost TAPIOCA on this rank, as TAPIOCA itself reports it.
struct Declaration {
    double seconds = 0;
    std::uint64_t bookkeeping_bytes = 0;
};

class Method {
public:
    virtual ~Method() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// True if the rank's bytes are one contiguous piece at its rank_offset, and not where the workload says.
    [[nodiscard]] virtual bool contiguous() const { return false; }
    /// Opens a file and does everything that precedes the first step. All of these functions are collective.
    virtual void open(std::string const& path, bool writing) = 0;
    /// Moves step number `step`, which is shifted in the file by `step` times the workload's step_shift.
    virtual void move(int step, VariableBuffers& buffers) = 0;
    virtual void sync() = 0;
    virtual void close() = 0;
    /// The declaration for the file that was opened last. Null if the method declares nothing, or has a log or
    /// subfiles, since then no step follows the plan.
    [[nodiscard]] virtual Declaration const* declaration() const { return nullptr; }
    /// The descriptor of this rank's own file, if its bytes go there, step by step, and not into the shared one;
    /// otherwise -1.
    [[nodiscard]] virtual int own_file() const { return -1; }
};

/// The fast tier that some methods write to first.
struct StageSetup {
    std::string place = "dram";  ///< as TAPIOCA_STAGE
    /// The directory of that tier, for methods that keep their own files there and, unlike TAPIOCA, do not bind them to
    /// NUMA nodes.
    std::string directory = "/dev/shm";
    std::optional<std::string> drain;  ///< as TAPIOCA_STAGE_DRAIN
};

/// Settings of TAPIOCA, as hints without their "tapioca_": {"nbaggr", "4"}.
using SettingList = std::vector<std::pair<std::string, std::string>>;

struct MethodSetup {
    std::int64_t limit_call = 0;  ///< bytes of one call of the limit; 0: the whole piece
    StageSetup stage;
    std::string subfile = {};   ///< as TAPIOCA_SUBFILE, for the method that makes subfiles
    SettingList settings = {};  ///< for the file, declared or through the drop-in library
};

/// MPI-IO through the drop-in library.
inline constexpr char const* dropin_suffix = "-dropin";
/// The same, through a log on the stage.
inline constexpr char const* staged_suffix = "-staged";

/// `name` is one of method_names() or stage_method_names(), or of with_dropin() of these. Throws std::runtime_error for
/// other names.
std::unique_ptr<Method> make_method(std::string const& name, MPI_Comm comm, BenchWorkload const& workload,
                                    MethodSetup const& setup);
/// Methods that can be measured step by step: "tapioca", "collective", "independent", "limit".
std::vector<std::string> const& method_names();
/// Methods that write to the stage first. Their cost can be measured only with a whole file.
std::vector<std::string> const& stage_method_names();
/// The method whose files consist of subfiles. It is measured step by step.
inline constexpr char const* subfile_method = "subfiles";
/// Removes a file that a method has made, and its subfiles.
void remove_file(std::string const& path);
/// A method's name as shown to users.
std::string method_label(std::string const& name);
/// Adds each MPI-IO method through the drop-in library; if `staged`, also the collective one through the drop-in
/// library's log.
std::vector<std::string> with_dropin(std::vector<std::string> const& methods, bool staged);
/// Whether the drop-in library was loaded into this process. Local; creates a file in `directory` for a moment.
bool dropin_is_loaded(std::string const& directory);
/// Seconds to open and close a file that is not used. Collective.
double open_and_close(MPI_Comm comm, std::string const& path, bool through);

}  // namespace bench
