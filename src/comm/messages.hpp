// Messages: sends and receives that are under way between ranks. The caller polls; nothing here waits.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tapioca::comm {

/// All functions are local. Messages between two ranks with the same tag arrive in the order in which they were sent.
class Messages {
public:
    Messages() = default;
    Messages(Messages const&) = delete;
    Messages& operator=(Messages const&) = delete;
    virtual ~Messages() = default;

    using Done = std::function<void()>;
    /// `bytes` must stay valid until poll() has called `done`, which it does only after the receiver has posted a
    /// receive.
    virtual void send(std::span<std::byte const> bytes, int to, int tag, Done done) = 0;
    /// Receives at most `bytes`. The returned number is for cancel().
    virtual int receive(std::span<std::byte> bytes, int from, int tag, Done done) = 0;
    /// Cancels a receive to which no message will come.
    virtual void cancel(int number) = 0;
    /// Receives a message with `tag` from any rank, if there is one.
    virtual std::optional<std::vector<std::byte>> take(int tag) = 0;

    /// Finds out which sends and receives are complete and calls `done` for each. Returns true if there was one.
    virtual bool poll() = 0;
    [[nodiscard]] virtual bool idle() const = 0;
    /// Drops everything that is under way without telling the other side, when a step is given up.
    virtual void drop() = 0;
};

class MpiMessages final : public Messages {
public:
    explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}

    void send(std::span<std::byte const> bytes, int to, int tag, Done done) override;
    int receive(std::span<std::byte> bytes, int from, int tag, Done done) override;
    void cancel(int number) override;
    std::optional<std::vector<std::byte>> take(int tag) override;
    bool poll() override;
    [[nodiscard]] bool idle() const override { return under_way_ == 0; }
    void drop() override;

    /// Sends a number to other ranks without waiting.
    void tell(std::vector<int> const& ranks, int tag, std::uint64_t number);
    /// A number that a rank has sent. Always lets MPI make progress.
    std::optional<std::uint64_t> told(int tag);
    /// Messages sent and received so far.
    [[nodiscard]] std::uint64_t moved() const { return moved_; }

private:
    enum class MessageKind { send, receive };
    int add(MessageKind kind, Done done);
    void remove(int number);

    MPI_Comm comm_;
    std::vector<MPI_Request> requests_;
    std::vector<MessageKind> kinds_;
    std::vector<Done> done_;
    std::vector<int> free_;
    std::vector<int> finished_;
    std::size_t under_way_ = 0;
    std::uint64_t moved_ = 0;
};

/// The maximum of all ranks' values, or the combination of all ranks' bytes, computed while the ranks go on. Values are
/// signed because MPICH 4.0 compares unsigned numbers as signed ones.
class Reduction {
public:
    Reduction() = default;
    Reduction(Reduction const&) = delete;
    Reduction& operator=(Reduction const&) = delete;

    /// Collective over `comm`, but waits for nobody.
    void start(MPI_Comm comm, std::vector<std::int64_t> values);
    /// The same in half as many hops, but it progresses only in done(), and not in other MPI calls: for ranks that wait
    /// for nothing else from then on. Its messages use the tags from `tag` on, fewer than 32, which must not be used
    /// otherwise.
    void start_attended(MPI_Comm comm, std::vector<std::int64_t> values, int tag);
    /// Sets the result that all ranks already know. Local. @pre done()
    void set(std::vector<std::int64_t> values) { values_ = std::move(values); }
    /// The same for one object of every rank, combined with `combine`. The result is in bytes().
    using Combine = void(void* in, void* in_out, int* count, MPI_Datatype*);
    void start(MPI_Comm comm, std::span<std::byte const> object, Combine* combine);
    /// True when values() or bytes() has the result, or if nothing was started.
    bool done();
    [[nodiscard]] std::vector<std::int64_t> const& values() const { return values_; }
    [[nodiscard]] std::vector<std::byte> const& bytes() const { return bytes_; }

private:
    void begin_round();

    MPI_Request request_ = MPI_REQUEST_NULL;
    std::vector<std::int64_t> mine_;
    std::vector<std::int64_t> values_;

    // Attended: in round i, every rank sends what it has to the rank 2^i further on. After as many rounds as the number
    // of ranks has binary digits, every rank has heard from every other, from some twice, which does not change a
    // maximum. MPI's own non-blocking reduction goes up and down a tree.
    int tag_ = 0;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 1;
    int round_ = 0, rounds_ = 0;
    std::vector<std::int64_t> incoming_;
    std::vector<std::vector<std::int64_t>> outgoing_;  ///< per round
    MPI_Request receive_ = MPI_REQUEST_NULL;
    std::vector<MPI_Request> sends_;

    // for bytes
    std::vector<std::byte> bytes_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace tapioca::comm
