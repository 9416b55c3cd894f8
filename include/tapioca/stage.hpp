// StageReader: what programs have written to a staged file, from its logs: while they run, or after they ended.
//
//     tapioca::StageReader reader("out.dat");             // a target, a directory of logs, or one .meta file
//     while (auto request = reader.next())                // rank by rank, in the order of writing
//         use(*request, reader.data(*request));
//
// No MPI, nothing is changed, nobody waits for the reader. Sees the logs of the host that it runs on.
#pragma once

#include <tapioca/cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tapioca/error.hpp>
#include <tapioca/pattern.hpp>

#pragma GCC visibility push(default)

namespace tapioca {

namespace stage {
class Reading;
struct Found;
}  // namespace stage

enum class StagedKind {
    contiguous,  ///< one piece
    subarray,    ///< as it was declared
    layout,      ///< pieces, such as those of a list of extents or of a view
};

/// A request as its program made it. A value; stays valid when the reader goes on.
struct StagedRequest {
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;  ///< how often the log had been emptied by flushes
    std::uint64_t number = 0;      ///< of the rank's requests since then, from 0
    std::uint64_t epoch = 0;       ///< collective calls order the requests of different ranks: later ones win
    std::uint32_t variable = 0;    ///< number of the variable in its step
    StagedKind kind = StagedKind::contiguous;
    Subarray array;           ///< of a subarray: moved to where it was written
    std::int64_t begin = 0;   ///< its first byte in the file
    std::int64_t end = 0;     ///< behind its last
    std::uint64_t bytes = 0;  ///< of its data
    bool in_target = false;   ///< the bytes went to the target as well, at once

private:
    friend class StageReader;
    friend class stage::Reading;
    std::shared_ptr<stage::Found const> found_;
};

/// `length` bytes of the file from `offset` on, which are those of the request's data from `position` on.
struct StagedPiece {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t position = 0;
};

/// All calls are local, and throw Error.
class StageReader {
public:
    /// Opens the logs of `path`: a target with its marker, a directory of logs, or one .meta file. Logs of other users,
    /// and logs that others may write, are refused.
    explicit StageReader(std::string const& path);
    StageReader(StageReader&&) noexcept;
    StageReader& operator=(StageReader&&) noexcept;
    ~StageReader();

    /// The file that the requests are meant for.
    [[nodiscard]] std::string const& target() const noexcept;
    /// Of the job that wrote the logs.
    [[nodiscard]] std::uint32_t ranks() const noexcept;
    /// The logs that the marker names and that are not here, as HOST:FILE.
    [[nodiscard]] std::vector<std::string> const& missing() const noexcept;

    /// The next request; none if there is no further one yet. May be called again later, also after a flush emptied the
    /// log: then requests of the next generation follow, and those that were not told yet are left out. What cannot be
    /// read of a rank is thrown once; the next call goes on with the other ranks.
    [[nodiscard]] std::optional<StagedRequest> next();
    /// True if nobody writes to the logs any more: once next() has nothing after that, nothing will come.
    [[nodiscard]] bool finished() const;

    /// Where the request's bytes belong, ascending.
    [[nodiscard]] std::vector<StagedPiece> pieces(StagedRequest const& request) const;
    /// The request's bytes, packed, whose checksum fits. Errc::invalid_state if the log has been emptied since, or
    /// never had them: they are in the target.
    [[nodiscard]] std::vector<std::byte> data(StagedRequest const& request) const;

private:
    std::unique_ptr<stage::Reading> reading_;
};

}  // namespace tapioca

#pragma GCC visibility pop
