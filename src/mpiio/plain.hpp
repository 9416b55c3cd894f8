// Plain: a file without a log. Collective accesses run on the engine, if all ranks can; others are passed on.
#pragma once

#include "mpiio/service.hpp"

namespace tapioca::mpiio {

class Handle;
class Steps;

class Plain final : public Service {
public:
    Plain(Handle& handle, Steps& steps) : handle_(handle), steps_(steps) {}

    Outcome serve(Request const& request) override;
    Outcome serve_alone(Request const& request) override;
    int hand_over(Direction direction, bool durable) override;
    int flush(bool durable) override { return hand_over(Direction::write, durable); }
    int settle() override { return MPI_SUCCESS; }  // at the next access
    [[nodiscard]] bool takes_writes() const override { return false; }
    [[nodiscard]] std::int64_t end() override { return 0; }

private:
    Outcome serve_together(Request const& request);

    Handle& handle_;
    Steps& steps_;
};

}  // namespace tapioca::mpiio
