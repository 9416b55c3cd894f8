// Plain: a file without a log. Collective accesses run on the engine if all ranks can take part; others are passed on.
#pragma once

#include "mpiio/service.hpp"

namespace tapioca::mpiio {

struct ProgramFile;
class Steps;

class Plain final : public Service {
public:
    Plain(ProgramFile& program, Steps& steps) : program_(program), steps_(steps) {}

    Attempt serve(DataAccess const& request) override;
    AccessOutcome serve_alone(DataAccess const& request) override;
    int hand_over(Direction direction, bool durable) override;
    int flush(bool durable) override { return hand_over(Direction::write, durable); }
    Attempt settle() override { return {}; }  // done at the next access
    [[nodiscard]] bool takes_writes() const override { return false; }
    [[nodiscard]] std::int64_t end() override { return 0; }

private:
    Attempt serve_together(DataAccess const& request);

    ProgramFile& program_;
    Steps& steps_;
};

}  // namespace tapioca::mpiio
