// Messages: sends and receives under way between ranks. The caller polls; nothing here waits.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tapioca::comm {

/// Local, all of it. Messages of a pair of ranks and a tag arrive in the order in which they were sent.
class Messages {
public:
    explicit Messages(MPI_Comm comm) : comm_(comm) {}
    Messages(Messages const&) = delete;
    Messages& operator=(Messages const&) = delete;

    using Done = std::function<void()>;
    /// `bytes` must stay valid until poll() has called `done`.
    void send(std::span<std::byte const> bytes, int to, int tag, Done done);
    /// Receives at most `bytes`. The number is for cancel().
    int receive(std::span<std::byte> bytes, int from, int tag, Done done);
    /// Takes back a receive to which no message will come.
    void cancel(int number);
    /// A message with `tag` from any rank, if one is there.
    std::optional<std::vector<std::byte>> take(int tag);

    /// Calls what is done. True if something was.
    bool poll();
    /// Lets ranks know a number, without waiting for them or for anybody.
    void tell(std::vector<int> const& ranks, int tag, std::uint64_t number);
    /// What a rank told. Lets MPI get on in any case.
    std::optional<std::uint64_t> told(int tag);
    /// Messages sent and received so far.
    [[nodiscard]] std::uint64_t moved() const { return moved_; }
    [[nodiscard]] bool idle() const { return under_way_ == 0; }
    /// Forgets everything under way, without telling the other side: for a step that is given up.
    void drop();

private:
    enum class Kind { send, receive };
    int add(Kind kind, Done done);
    void remove(int number);

    MPI_Comm comm_;
    std::vector<MPI_Request> requests_;
    std::vector<Kind> kinds_;
    std::vector<Done> done_;
    std::vector<int> free_;
    std::vector<int> finished_;
    std::size_t under_way_ = 0;
    std::uint64_t moved_ = 0;
};

/// The greatest of every rank's values, computed while the ranks go on. Signed: MPICH 4.0 compares unsigned numbers
/// as if they were.
class Reduction {
public:
    Reduction() = default;
    Reduction(Reduction const&) = delete;
    Reduction& operator=(Reduction const&) = delete;

    /// Collective over `comm`, but waits for nobody.
    void start(MPI_Comm comm, std::vector<std::int64_t> values);
    /// True when values() holds the result, or nothing was started.
    bool done();
    [[nodiscard]] std::vector<std::int64_t> const& values() const { return values_; }

private:
    MPI_Request request_ = MPI_REQUEST_NULL;
    std::vector<std::int64_t> mine_;
    std::vector<std::int64_t> values_;
};

}  // namespace tapioca::comm
