// Helpers for methods that call MPI-IO: errors as exceptions, and hints for the drop-in library.
#pragma once

#include <mpi.h>

#include "method.hpp"

namespace bench {

/// Throws std::runtime_error, saying which `call` failed, unless `code` is MPI_SUCCESS.
void check_mpi(int code, char const* call);

/// The hint that turns the drop-in library off or, if `through` it, those of a `stage` (may be null) and of `settings`.
class HintList {
public:
    explicit HintList(bool through, StageSetup const* stage = nullptr, SettingList const& settings = {});
    HintList(HintList const&) = delete;
    HintList& operator=(HintList const&) = delete;
    ~HintList();
    [[nodiscard]] MPI_Info info() const { return info_; }

private:
    MPI_Info info_ = MPI_INFO_NULL;
};

}  // namespace bench
