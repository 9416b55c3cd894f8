// Drain: brings the requests of logs into the file, each byte from the latest of all ranks. Collective, all of it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plan/plan.hpp"
#include "stage/content.hpp"

namespace tapioca::api {

class FileState;

class Drain {
public:
    using Progress = std::function<void(std::uint64_t bytes)>;
    /// `done` are bytes of the file that need not be written, unless ranks overlap.
    Drain(std::shared_ptr<FileState> file, stage::Content& content, std::vector<Extent> done, Progress progress);
    /// The same Status on every rank.
    core::Status all();

private:
    core::Status run(stage::Batch const& batch);

    std::shared_ptr<FileState> file_;
    stage::Content& content_;
    std::vector<Extent> done_;
    Progress progress_;
};

}  // namespace tapioca::api
