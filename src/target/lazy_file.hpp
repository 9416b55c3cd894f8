// LazyFile: a rank's access to a file that all ranks have open. The file is opened when the rank first needs it, and
// again after it was closed. If another file has got its name meanwhile, opening fails.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "target/file_identity.hpp"
#include "target/target.hpp"

namespace tapioca::target {

/// For one thread at a time; several threads may use the Target itself.
class LazyFile {
public:
    struct Expected {
        std::string path;
        OpenMode access = OpenMode::read;
        FileIdentity identity;  ///< identity of the file that must be found under the path
        std::string host;       ///< where rank 0 has opened it, for messages
        bool discard = false;   ///< writes are discarded
        /// If given, makes the target out of the file that was found under the path: that may be only a stub.
        std::function<std::unique_ptr<Target>(std::unique_ptr<Target>)> made_of = nullptr;
    };

    LazyFile() = default;
    LazyFile(LazyFile const&) = delete;
    LazyFile& operator=(LazyFile const&) = delete;

    /// Sets which file is opened from now on.
    void expect(Expected expected) { expected_ = std::move(expected); }
    /// The file, opened if necessary. Null if that failed; status() gives the reason.
    Target* get();
    [[nodiscard]] core::Status const& status() const { return status_; }
    /// The file if it is open, otherwise null.
    [[nodiscard]] Target* if_open() const { return target_.get(); }
    /// Replaces the open file by the one under the path, which was opened elsewhere.
    void keep(std::unique_ptr<Target> found);
    /// Opens the file again if it is open, since what this host has cached of it may be old. Keeps it if that fails.
    void renew();
    /// Reports errors of the file system. The next get() opens the file again.
    core::Status close();
    /// Opens the file a second time, independent of get() and without recording changes.
    [[nodiscard]] core::Result<std::unique_ptr<Target>> open_again() const;
    /// From now on, records there whenever this rank is about to change the file; null: stops recording. Must not be
    /// called while another thread uses the target.
    void tell_changes(std::shared_ptr<Changes> changes);

private:
    [[nodiscard]] core::Result<std::unique_ptr<Target>> find() const;
    [[nodiscard]] std::unique_ptr<Target> target_of(std::unique_ptr<Target> found) const;

    Expected expected_;
    std::unique_ptr<Target> target_;
    core::Status status_;
    std::shared_ptr<Changes> changes_;
};

}  // namespace tapioca::target
