// Drain: brings the requests of logs into the file, window of epochs by window of epochs. Collective, all of it.
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
    /// `done` are bytes of the file that need not be written, unless ranks overlap. `before_overwriting` is called
    /// before older bytes are written over newer ones; a recovery has none.
    Drain(std::shared_ptr<FileState> file, stage::Content& content, std::vector<Extent> done, Progress progress,
          std::function<void()> before_overwriting);
    /// The same Status on every rank.
    core::Status all();
    [[nodiscard]] std::uint64_t windows() const { return windows_; }

private:
    core::Status window(std::uint64_t first, std::uint64_t last);
    core::Status take_back();
    core::Status run(stage::Batch const& batch);

    std::shared_ptr<FileState> file_;
    stage::Content& content_;
    std::vector<Extent> done_;
    Progress progress_;
    std::function<void()> before_overwriting_;
    bool tainted_ = false;
    bool taken_back_ = false;
    std::uint64_t windows_ = 0;
};

}  // namespace tapioca::api
