// LazyFile: a rank's own way to a file that all ranks have open. The file is opened when the rank first needs it, and
// again after it was closed; another file that got its name meanwhile is a failure.
#pragma once

#include <memory>
#include <string>

#include "target/file_identity.hpp"
#include "target/target.hpp"

namespace tapioca::target {

/// For one thread at a time; the Target itself may be used by several.
class LazyFile {
public:
    struct Expected {
        std::string path;
        OpenMode access = OpenMode::read;
        FileIdentity identity;  ///< of the file that must be found under the path
        std::string host;       ///< where rank 0 has opened it, for messages
        bool discard = false;   ///< writes are swallowed
    };

    LazyFile() = default;
    LazyFile(LazyFile const&) = delete;
    LazyFile& operator=(LazyFile const&) = delete;

    /// What is opened from now on.
    void expect(Expected expected) { expected_ = std::move(expected); }
    /// The file, opened if it is not open. Null if that failed: then status() tells why.
    Target* get();
    [[nodiscard]] core::Status const& status() const { return status_; }
    /// The file if it is open, else null.
    [[nodiscard]] Target* if_open() const { return target_.get(); }
    /// Takes what was opened elsewhere, in place of what is open.
    void keep(std::unique_ptr<Target> target);
    /// Reports what the file system says. The next get() opens the file again.
    core::Status close();
    /// The file once more, apart from get(), and not told of changes.
    [[nodiscard]] core::Result<std::unique_ptr<Target>> open_again() const;
    /// From now on it is noted there whenever this rank is about to change the file. Null: no longer. Not while another
    /// thread uses the target.
    void tell_changes(std::shared_ptr<Changes> changes);

private:
    Expected expected_;
    std::unique_ptr<Target> target_;
    core::Status status_;
    std::shared_ptr<Changes> changes_;
};

}  // namespace tapioca::target
