// Forks: how a process knows that it is another than the one that made something.
#pragma once

namespace tapioca::core {

/// How many times fork() was called on the way to this process, since the first of these calls: it differs from that of
/// the process it was forked from. No system call, unlike a look at the process id.
unsigned forks();

}  // namespace tapioca::core
