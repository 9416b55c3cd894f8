// Stage: one rank's side of a staged file: its log, its epoch, and what to do when the log is full. Local.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "stage/content.hpp"
#include "stage/writer.hpp"

namespace tapioca::stage {

/// When the log is made to survive the machine.
enum class Durable { write, collective, sync };

class Stage {
public:
    Stage(Writer writer, Durable durable) : writer_(std::move(writer)), durable_(durable) {}

    /// A collective call of the program begins: later requests win over those of all ranks before it.
    void advance() { ++epoch_; }
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] Durable durable() const { return durable_; }

    struct Write {
        pattern::Variable const& variable;
        std::int64_t shift = 0;
        std::byte const* data = nullptr;
        std::uint32_t number = 0;
        bool collective = true;
    };
    /// Logs a request or, if the log is full, has it written to the target by `through`.
    core::Status write(Write const& write, std::function<core::Status()> const& through);
    /// Notes a request that `through` writes to the target, because it should not wait.
    core::Status write_through(Write const& write, std::function<core::Status()> const& through);
    /// With the data in the log as well: somebody else may write older bytes over it before the next flush.
    void keep_data_of_stored(bool keep) { keep_data_ = keep; }

    [[nodiscard]] bool empty() const { return writer_.entries() == 0; }
    /// From the first to behind the last byte that is in the log.
    [[nodiscard]] std::int64_t begin() const { return begin_; }
    [[nodiscard]] std::int64_t end() const { return end_; }
    /// The log was full since the last reset.
    [[nodiscard]] bool full() const { return full_; }
    /// Whether it was full for the first time just now, for a warning.
    [[nodiscard]] bool take_warning();

    /// What is in the log. The view stays valid until reset().
    core::Result<std::shared_ptr<Content>> content() const;

    /// Where this rank's own bytes of [begin, end) are: visits pieces (offset, length, data), ascending.
    using Visit = std::function<void(std::int64_t offset, std::int64_t length, std::byte const* data)>;
    core::Status look(std::int64_t begin, std::int64_t end, Visit const& visit);

    core::Status sync();
    /// All was flushed. `empty` on the rank that empties a shared log, before the others.
    core::Status reset(bool empty);

    /// For the account.
    struct Totals {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
        std::uint64_t through = 0;  ///< of these, not left in the log
        double seconds = 0;
    };
    Totals totals;

    [[nodiscard]] Writer const& writer() const { return writer_; }
    [[nodiscard]] Writer& writer() { return writer_; }

private:
    core::Status note_stored(Write const& write);
    void widen(Write const& write);

    Writer writer_;
    Durable durable_;
    std::uint64_t epoch_ = 1;
    std::int64_t begin_ = pattern::no_offset;
    std::int64_t end_ = 0;
    bool full_ = false;
    bool warned_ = false;
    bool keep_data_ = false;
    bool named_ = false;  ///< the files' names are durable

    // what look() found out, as of so many entries
    std::uint64_t looked_at_ = UINT64_MAX;
    std::shared_ptr<Content> seen_;
    Batch own_;
};

}  // namespace tapioca::stage
