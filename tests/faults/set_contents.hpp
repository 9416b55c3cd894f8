// What a file has that may be a set of subfiles, for sweeps: read by the set's own code, without faults.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "subfile/recover.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::faults {

/// Completes the set if it was interrupted. Says what is wrong, or nothing.
inline std::string complete_set(std::string const& path)
{
    auto const stub = subfile::find_stub(path);
    if (!stub) return stub.error().text;
    if (!*stub) return {};
    auto const found = subfile::recover_set(path, **stub);
    return found ? "" : "the set cannot be completed: " + found.error().text;
}

/// The whole file, as text; empty if there is none. `wrong` says if a set cannot be read.
inline std::string whole_file(std::string const& path, std::string& wrong)
{
    auto const stub = subfile::find_stub(path);
    if (!stub || !*stub) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    subfile::SetTarget set(nullptr, subfile::beside(path, (*stub)->directory), (*stub)->identity,
                           target::OpenMode::read);
    auto const size = set.size();
    std::string text(size ? *size : 0, 0);
    auto const read = size ? set.read(0, std::as_writable_bytes(std::span(text))) : size;
    if (!read) wrong = "the set cannot be read: " + read.error().text;
    return text;
}

}  // namespace tapioca::faults
