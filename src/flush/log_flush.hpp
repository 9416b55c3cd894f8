// LogFlush: writes the requests of logs to the file, each byte from the latest request of all ranks. All functions are
// collective.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/transfer.hpp"
#include "file/open_file.hpp"
#include "report/account.hpp"
#include "stage/log_content.hpp"

namespace tapioca::flush {

class LogFlush {
public:
    using OnProgress = std::function<void(std::uint64_t bytes)>;
    /// `done`: bytes of the file that need not be written, unless ranks overlap.
    LogFlush(file::OpenFile& file, report::Account& account, stage::LogContent& content, std::vector<Extent> done,
             OnProgress progress);
    /// Flushes everything. The same Status on every rank.
    core::Status all();

private:
    core::Status run(stage::Batch const& batch);
    core::Status move(engine::Transfer& transfer, stage::Batch const& batch);

    file::OpenFile& file_;
    report::Account& account_;
    stage::LogContent& content_;
    std::vector<Extent> done_;
    OnProgress progress_;
};

/// Writes the requests of logs, of which this rank has `content`, to the file, as `tapioca log recover` does.
/// Collective. `progress` is told how many bytes of this rank are done.
core::Status replay(file::OpenFile& file, report::Account& account, stage::LogContent& content,
                    LogFlush::OnProgress const& progress);

}  // namespace tapioca::flush
