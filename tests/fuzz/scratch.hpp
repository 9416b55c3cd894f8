// A directory for the files that a fuzzer reads, in $TMPDIR: those who start the fuzzer remove it after a crash.
#pragma once

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

namespace tapioca::fuzz {

class Scratch {
public:
    Scratch()
    {
        auto const* const chosen = std::getenv("TMPDIR");
        auto name = std::string(chosen ? chosen : "/tmp") + "/tapioca-fuzz-XXXXXX";
        claim(::mkdtemp(name.data()) != nullptr, "there is room for a directory");
        path_ = name;
    }
    Scratch(Scratch const&) = delete;
    Scratch& operator=(Scratch const&) = delete;
    ~Scratch()
    {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    [[nodiscard]] std::string const& path() const { return path_; }

    /// Makes a file of ours with these bytes, in place of what was there.
    void write(std::string const& name, std::span<std::byte const> bytes) const
    {
        int const file = ::open((path_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        claim(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
              "a file can be written");
        ::close(file);
    }

private:
    std::string path_;
};

/// One for the whole run; gone when the program ends in order.
inline Scratch const& scratch()
{
    static Scratch const directory;
    return directory;
}

}  // namespace tapioca::fuzz
