// Every kind of tier in the table, for the tests of what all of them must do.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/tier/kinds.hpp"

namespace tapioca::test {

/// A tier of each kind, as users may wish for it, at the place that it names for trying it out.
inline std::vector<std::string> every_tier()
{
    std::vector<std::string> wishes;
    for (auto const* const kind : machine::tier_kinds()) {
        std::string wish(kind->name);
        auto const scratch = std::filesystem::current_path() / wish;
        std::filesystem::create_directories(scratch);
        if (kind->sample) wish += ":" + kind->sample(scratch);
        wishes.push_back(wish);
    }
    return wishes;
}

/// The name of a test for one of them.
inline std::string tier_of_test(testing::TestParamInfo<std::string> const& instance)
{
    return instance.param.substr(0, instance.param.find(':'));
}

/// Ends the process like a crash would, without destructors; the exit status tells whether `body` held.
inline int in_another_process(std::function<bool()> const& body)
{
    auto const child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

}  // namespace tapioca::test
