#include "mpiio/environment.hpp"

#include <mutex>
#include <optional>

#include "mpiio/diagnostics.hpp"

namespace tapioca::mpiio {

core::Result<settings::Settings> environment()
{
    struct Last {
        std::mutex mutex;
        std::optional<settings::Pairs> pairs;
        core::Result<settings::Settings> settings;
    };
    static auto& last = *new Last;  // never destroyed: files may be closed while the program exits
    std::lock_guard const lock(last.mutex);
    auto now = settings::read_environment();
    if (!last.pairs || *last.pairs != now) {
        last.settings = settings::resolve({}, {}, now);
        last.pairs = std::move(now);
    }
    return last.settings;
}

bool is_off()
{
    auto const settings = environment();
    if (!settings) tell_left_alone("tapioca: " + settings.error().text);
    return !settings || settings->options.off.value_or(false);
}

}  // namespace tapioca::mpiio
