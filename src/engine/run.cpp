#include "engine/run.hpp"

#include <utility>

namespace tapioca::engine {

std::unique_ptr<Run> start(Context context)
{
    if (context.route->way == plan::Way::direct) return start_direct(std::move(context));
    if (context.writing) return start_write(std::move(context));
    if (context.networked()) return start_remote_read(std::move(context));
    return start_read(std::move(context));
}

}  // namespace tapioca::engine
