// Sets an environment variable for the life of a scope.
#pragma once

#include <cstdlib>
#include <string>

namespace tapioca::test {

class Setting {
public:
    Setting(char const* name, std::string const& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    Setting(Setting const&) = delete;
    Setting& operator=(Setting const&) = delete;
    ~Setting() { ::unsetenv(name_); }

private:
    char const* name_;
};

}  // namespace tapioca::test
