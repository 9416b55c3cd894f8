#include "comm/messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

int MpiMessages::add(MessageKind kind, Done done)
{
    if (free_.empty()) {
        free_.push_back(static_cast<int>(requests_.size()));
        requests_.push_back(MPI_REQUEST_NULL);
        kinds_.push_back(kind);
        done_.emplace_back();
        finished_.emplace_back();
    }
    auto const number = free_.back();
    free_.pop_back();
    kinds_[static_cast<std::size_t>(number)] = kind;
    done_[static_cast<std::size_t>(number)] = std::move(done);
    ++under_way_;
    return number;
}

void MpiMessages::remove(int number)
{
    free_.push_back(number);
    --under_way_;
}

void MpiMessages::send(std::span<std::byte const> bytes, int to, int tag, Done done)
{
    auto const number = static_cast<std::size_t>(add(MessageKind::send, std::move(done)));
    // Synchronous: completes when the receiver has posted a receive, so that messages do not pile up there.
    MPI_Issend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, comm_, &requests_[number]);
}

int MpiMessages::receive(std::span<std::byte> bytes, int from, int tag, Done done)
{
    auto const number = add(MessageKind::receive, std::move(done));
    MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag, comm_,
              &requests_[static_cast<std::size_t>(number)]);
    return number;
}

void MpiMessages::cancel(int number)
{
    auto& request = requests_[static_cast<std::size_t>(number)];
    Waiting const waiting("a message to be taken back");
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    remove(number);
}

std::optional<std::vector<std::byte>> MpiMessages::take(int tag)
{
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &found, &message, &status);
    if (!found) return std::nullopt;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    Waiting const waiting("a message that has begun to come");
    MPI_Mrecv(data.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return data;
}

bool MpiMessages::poll()
{
    if (under_way_ == 0) return false;
    int count = 0;
    MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(), MPI_STATUSES_IGNORE);
    if (count == MPI_UNDEFINED || count == 0) return false;
    // The callbacks may add requests, so the list of finished ones is copied first.
    std::vector<int> const finished(finished_.begin(), finished_.begin() + count);
    for (int const place : finished) {
        auto const done = std::exchange(done_[static_cast<std::size_t>(place)], nullptr);
        remove(place);
        ++moved_;
        done();
    }
    return true;
}

void MpiMessages::tell(std::vector<int> const& ranks, int tag, std::uint64_t number)
{
    auto* const kept = new std::uint64_t(number);  // never freed, because nobody waits until it has been sent
    for (int const rank : ranks) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(kept, sizeof *kept, MPI_BYTE, rank, tag, comm_, &request);
        MPI_Request_free(&request);
    }
}

std::optional<std::uint64_t> MpiMessages::told(int tag)
{
    auto const bytes = take(tag);
    if (!bytes) return std::nullopt;
    std::uint64_t number = 0;
    std::memcpy(&number, bytes->data(), sizeof number);
    return number;
}

void MpiMessages::drop()
{
    bool const active = mpi_is_active();  // otherwise they ended with MPI
    for (std::size_t i = 0; i < requests_.size(); ++i)
        if (active && requests_[i] != MPI_REQUEST_NULL) {
            if (kinds_[i] == MessageKind::receive) MPI_Cancel(&requests_[i]);
            MPI_Request_free(&requests_[i]);
        }
    kinds_.clear();
    requests_.clear();
    // MPI may still access the memory of a message that was already matched, so what its callback holds is never
    // released.
    new std::vector<Done>(std::move(done_));
    done_.clear();
    free_.clear();
    finished_.clear();
    under_way_ = 0;
}

void Reduction::start(MPI_Comm comm, std::vector<std::int64_t> values)
{
    mine_ = std::move(values);
    values_.assign(mine_.size(), 0);
    MPI_Iallreduce(mine_.data(), values_.data(), static_cast<int>(mine_.size()), MPI_INT64_T, MPI_MAX, comm, &request_);
}

// Uses PMPI_ names, because tools that count messages are interested in those with data.
void Reduction::start_attended(MPI_Comm comm, std::vector<std::int64_t> values, int tag)
{
    comm_ = comm;
    tag_ = tag;
    rank_ = rank_in(comm);
    size_ = size_of(comm);
    values_ = std::move(values);
    incoming_.resize(values_.size());
    round_ = rounds_ = 0;
    while (std::int64_t{1} << rounds_ < size_) ++rounds_;
    outgoing_.resize(static_cast<std::size_t>(rounds_));
    sends_.assign(outgoing_.size(), MPI_REQUEST_NULL);
    if (rounds_ > 0) begin_round();
}

void Reduction::begin_round()
{
    auto const round = static_cast<std::size_t>(round_);
    auto const bytes = static_cast<int>(values_.size() * sizeof values_[0]);
    auto const step = static_cast<int>(std::int64_t{1} << round_);
    auto const to = static_cast<int>((std::int64_t{rank_} + step) % size_);
    auto const from = static_cast<int>((std::int64_t{rank_} - step + size_) % size_);
    outgoing_[round] = values_;
    PMPI_Irecv(incoming_.data(), bytes, MPI_BYTE, from, tag_ + round_, comm_, &receive_);
    PMPI_Isend(outgoing_[round].data(), bytes, MPI_BYTE, to, tag_ + round_, comm_, &sends_[round]);
}

void Reduction::start(MPI_Comm comm, std::span<std::byte const> object, Combine* combine)
{
    bytes_.assign(object.begin(), object.end());
    MPI_Type_contiguous(static_cast<int>(object.size()), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
    MPI_Op_create(combine, 1, &op_);
    MPI_Iallreduce(MPI_IN_PLACE, bytes_.data(), 1, type_, op_, comm, &request_);
}

bool Reduction::done()
{
    int flag = 0;
    while (round_ < rounds_) {
        PMPI_Test(&receive_, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return false;
        for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::max(values_[i], incoming_[i]);
        if (++round_ < rounds_) begin_round();
    }
    PMPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &flag, MPI_STATUSES_IGNORE);
    if (flag == 0) return false;
    PMPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
    if (flag != 0 && op_ != MPI_OP_NULL) {
        MPI_Op_free(&op_);
        MPI_Type_free(&type_);
    }
    return flag != 0;
}

}  // namespace tapioca::comm
