// A directory in $TMPDIR for the files that a fuzzer reads. After a crash, whoever started the fuzzer removes it.
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

    /// Creates a file of this user with these bytes, replacing any existing one.
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

/// One for the whole run, removed when the program ends normally.
inline Scratch const& scratch()
{
    static Scratch const directory;
    return directory;
}

}  // namespace tapioca::fuzz
