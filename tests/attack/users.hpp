// A second user, for tests of what others can do in shared directories. Needs root.
#pragma once

#include <csignal>
#include <functional>
#include <string>

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tapioca::test {

constexpr uid_t nobody = 65534;

inline bool is_root()
{
    return ::geteuid() == 0;
}
inline char const* const needs_root = "only root can be two users at once";

/// Becomes another user permanently.
inline void become_nobody()
{
    if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(99);
}

/// Runs `act` in a process of another user. Returns true if `act` returned true there.
inline bool as_nobody(std::function<bool()> const& act)
{
    auto const child = ::fork();
    if (child == 0) {
        become_nobody();
        ::_exit(act() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Another user's process that repeats an action for the life of this object.
class Attacker {
public:
    explicit Attacker(std::function<void()> const& act) : child_(::fork())
    {
        if (child_ != 0) return;
        become_nobody();
        while (::getppid() != 1) act();
        ::_exit(0);
    }
    Attacker(Attacker const&) = delete;
    Attacker& operator=(Attacker const&) = delete;
    ~Attacker()
    {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

private:
    pid_t child_;
};

}  // namespace tapioca::test
