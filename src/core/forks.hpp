// Forks: lets a process find out that it is not the one that made an object.
#pragma once

namespace tapioca::core {

/// How many times fork() was called on the way to this process, counted from the first call of this function. It
/// differs from the number of the parent process. Makes no system call, unlike looking at the process id.
unsigned forks();

}  // namespace tapioca::core
