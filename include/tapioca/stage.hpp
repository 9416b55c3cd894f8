// StageReader: reads from the logs of a staged file what programs have written to it, while they run or after they have
// ended.
//
//     tapioca::StageReader reader("out.dat");             // a target, a directory of logs, or one .meta file
//     while (auto request = reader.next())                // rank by rank, in the order of writing
//         use(*request, reader.data(*request));
//
// The reader uses no MPI and changes nothing, and nobody waits for it. It sees the logs of the host that it runs on.
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
    subarray,    ///< a subarray, as it was declared
    layout,      ///< pieces, such as those of a list of extents or of a view
};

/// A request as the program made it. A value: it stays valid when the reader continues.
struct StagedRequest {
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;  ///< how often flushes had emptied the log before
    std::uint64_t number = 0;      ///< number among the rank's requests since then, starting at 0
    std::uint64_t epoch = 0;       ///< grows with every collective call; between ranks, the later epoch wins
    std::uint32_t variable = 0;    ///< number of the variable in its step
    StagedKind kind = StagedKind::contiguous;
    Subarray array;           ///< for a subarray: the array, at the place where it was written
    std::int64_t begin = 0;   ///< its first byte in the file
    std::int64_t end = 0;     ///< one past its last byte in the file
    std::uint64_t bytes = 0;  ///< number of bytes of its data
    bool in_target = false;   ///< the bytes were also written to the target at once

private:
    friend class StageReader;
    friend class stage::Reading;
    std::shared_ptr<stage::Found const> found_;
};

/// `length` bytes of the file at `offset`; they are the bytes at `position` of the request's data.
struct StagedPiece {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t position = 0;
};

/// All calls are local. If they fail, they throw Error.
class StageReader {
public:
    /// Opens the logs of `path`: a target with its marker, a directory of logs, or one .meta file. Logs that belong to
    /// other users, or to which others may write, are refused. If none of the logs is on this host, the error says on
    /// which hosts they are.
    explicit StageReader(std::string const& path);
    StageReader(StageReader&&) noexcept;
    StageReader& operator=(StageReader&&) noexcept;
    ~StageReader();

    /// The file that the requests are meant for.
    [[nodiscard]] std::string const& target() const noexcept;
    /// The number of ranks of the job that wrote the logs.
    [[nodiscard]] std::uint32_t ranks() const noexcept;
    /// The logs that the marker names but that are not on this host, as HOST:FILE.
    [[nodiscard]] std::vector<std::string> const& missing() const noexcept;

    /// The next request, or nothing if there are no more at the moment. May be called again later. If a flush has
    /// emptied the log in between, the requests of the next generation follow, and earlier ones that were not yet
    /// returned are left out. If a rank's log cannot be read, this is thrown once; the next call continues with the
    /// other ranks.
    [[nodiscard]] std::optional<StagedRequest> next();
    /// True if nobody writes to the logs any more. If next() returns nothing after that, there will be no more
    /// requests.
    [[nodiscard]] bool finished() const;

    /// Where the request's bytes belong in the file, in ascending order.
    [[nodiscard]] std::vector<StagedPiece> pieces(StagedRequest const& request) const;
    /// The request's bytes, packed, after their checksum was verified. Errc::invalid_state if the log has been emptied
    /// since or never contained them: then they are in the target.
    [[nodiscard]] std::vector<std::byte> data(StagedRequest const& request) const;

private:
    std::unique_ptr<stage::Reading> reading_;
};

}  // namespace tapioca

#pragma GCC visibility pop
