#include "mpiio/sieve.hpp"

#include <algorithm>

namespace tapioca::mpiio {

void Sieve::take(std::int64_t offset, std::int64_t length, std::int64_t place)
{
    auto const there = std::clamp<std::int64_t>(size_ - offset, 0, length);
    if (there == 0) return;
    bool const near = !pieces_.empty() && offset >= end_ && offset - end_ <= gap && offset + there - begin_ <= most;
    if (!near) read();
    if (pieces_.empty()) begin_ = offset;
    end_ = offset + there;
    pieces_.push_back({offset, there, place});
}

core::Result<std::int64_t> Sieve::finish()
{
    read();
    if (!status_) return tl::unexpected(status_.error());
    return bytes_;
}

void Sieve::read()
{
    if (pieces_.empty() || !status_) return;
    if (pieces_.size() == 1) {
        status_ = load_(begin_, {to_ + pieces_[0].place, static_cast<std::size_t>(pieces_[0].length)});
    } else {
        window_.resize(static_cast<std::size_t>(end_ - begin_));
        status_ = load_(begin_, window_);
        for (auto const& [offset, length, place] : pieces_)
            std::copy_n(window_.begin() + (offset - begin_), length, to_ + place);
    }
    for (auto const& piece : pieces_) bytes_ += piece.length;
    pieces_.clear();
}

core::Status load(target::Target& target, std::int64_t begin, std::span<std::byte> to)
{
    auto const got = target.read(begin, to);
    if (!got) return tl::unexpected(got.error());
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(*got), to.end(), std::byte{0});
    return {};
}

}  // namespace tapioca::mpiio
