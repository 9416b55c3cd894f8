// Messages: sends and receives under way between ranks. The caller polls; nothing here waits.
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

/// Local, all of it. Messages of a pair of ranks and a tag arrive in the order in which they were sent.
class Messages {
public:
    Messages() = default;
    Messages(Messages const&) = delete;
    Messages& operator=(Messages const&) = delete;
    virtual ~Messages() = default;

    using Done = std::function<void()>;
    /// `bytes` must stay valid until poll() has called `done`, which is not before the receiver has asked for them.
    virtual void send(std::span<std::byte const> bytes, int to, int tag, Done done) = 0;
    /// Receives at most `bytes`. The number is for cancel().
    virtual int receive(std::span<std::byte> bytes, int from, int tag, Done done) = 0;
    /// Takes back a receive to which no message will come.
    virtual void cancel(int number) = 0;
    /// A message with `tag` from any rank, if one is there.
    virtual std::optional<std::vector<std::byte>> take(int tag) = 0;

    /// Looks which sends and receives are complete and calls the `done` of each. True if any was.
    virtual bool poll() = 0;
    [[nodiscard]] virtual bool idle() const = 0;
    /// Forgets everything under way, without telling the other side: for a step that is given up.
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

    /// Lets ranks know a number, without waiting for them or for anybody.
    void tell(std::vector<int> const& ranks, int tag, std::uint64_t number);
    /// What a rank told. Lets MPI get on in any case.
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

/// The greatest of every rank's values, or what becomes of every rank's bytes, computed while the ranks go on. Signed:
/// MPICH 4.0 compares unsigned numbers as if they were.
class Reduction {
public:
    Reduction() = default;
    Reduction(Reduction const&) = delete;
    Reduction& operator=(Reduction const&) = delete;

    /// Collective over `comm`, but waits for nobody.
    void start(MPI_Comm comm, std::vector<std::int64_t> values);
    /// The same in half as many hops, but only done() moves it on, and not just any call of MPI: for ranks that wait
    /// for nothing else from here on. Its messages have tags from `tag` on, fewer than 32, which no others may have.
    void start_attended(MPI_Comm comm, std::vector<std::int64_t> values, int tag);
    /// As if all had said that: what they know already. Local. @pre done()
    void set(std::vector<std::int64_t> values) { values_ = std::move(values); }
    /// The same of one object of every rank, with `combine`. The result is in bytes().
    using Combine = void(void* in, void* in_out, int* count, MPI_Datatype*);
    void start(MPI_Comm comm, std::span<std::byte const> object, Combine* combine);
    /// True when values() or bytes() holds the result, or nothing was started.
    bool done();
    [[nodiscard]] std::vector<std::int64_t> const& values() const { return values_; }
    [[nodiscard]] std::vector<std::byte> const& bytes() const { return bytes_; }

private:
    void begin_round();

    MPI_Request request_ = MPI_REQUEST_NULL;
    std::vector<std::int64_t> mine_;
    std::vector<std::int64_t> values_;

    // Attended: in round i every rank sends what it has to the rank 2^i further on. After as many rounds as the number
    // of ranks has binary digits everybody has heard of everybody, of some twice, which the greatest does not mind.
    // MPI's own, where it does not block, goes up and down a tree.
    int tag_ = 0;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 1;
    int round_ = 0, rounds_ = 0;
    std::vector<std::int64_t> incoming_;
    std::vector<std::vector<std::int64_t>> outgoing_;  ///< per round
    MPI_Request receive_ = MPI_REQUEST_NULL;
    std::vector<MPI_Request> sends_;

    // of bytes
    std::vector<std::byte> bytes_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace tapioca::comm
