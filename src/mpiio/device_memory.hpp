// Recognises buffers that the processor cannot access.
#pragma once

namespace tapioca::mpiio {

/// True if `address` lies in a GPU's memory, as far as the runtimes loaded into this process (CUDA, HIP) know. Local.
bool in_device_memory(void const* address);

}  // namespace tapioca::mpiio
