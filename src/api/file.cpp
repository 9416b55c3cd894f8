// File and Step: the C++ interface to declared I/O.
#include <fmt/core.h>

#include <tapioca/tapioca.hpp>

#include "declared/file_state.hpp"
#include "declared/step_state.hpp"
#include "plan/plan.hpp"
#include "report/report.hpp"

namespace tapioca {

namespace {

/// The state behind a File or a Step that was not moved from.
template <class State>
State& alive(State* state, char const* call, char const* what)
{
    if (!state)
        throw Error(Errc::invalid_state, -1, 0, "", fmt::format("tapioca: {}: the {} was moved from", call, what));
    return *state;
}

declared::FileState& alive(std::shared_ptr<declared::FileState> const& state, char const* call)
{
    return alive(state.get(), call, "file");
}

declared::StepState& alive(std::unique_ptr<declared::StepState> const& state, char const* call)
{
    return alive(state.get(), call, "step");
}

}  // namespace

File File::open(MPI_Comm comm, std::filesystem::path const& path, Mode mode, Options const& options, MPI_Info info)
{
    return File(declared::open_file(comm, path.native(), mode, options, info));
}

File::File(std::shared_ptr<declared::FileState> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&& other) noexcept
{
    File old(std::move(other));
    std::swap(state_, old.state_);
    return *this;
}
File::~File() = default;

Step File::declare(Pattern const& pattern)
{
    (void)alive(state_, "declare");
    return Step(declared::declare(state_, pattern::variables_of(pattern)));
}

void File::flush()
{
    alive(state_, "flush").flush();
}

void File::drain()
{
    alive(state_, "drain").drain();
}

void File::sync()
{
    alive(state_, "sync").sync();
}

std::uint64_t File::size()
{
    return alive(state_, "size").size();
}

void File::close()
{
    alive(state_, "close").close();
}

bool File::is_open() const noexcept
{
    return state_ && state_->open;
}

Step::Step(std::unique_ptr<declared::StepState> state) : state_(std::move(state)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept
{
    Step old(std::move(other));
    std::swap(state_, old.state_);
    return *this;
}
Step::~Step()
{
    if (state_ && state_->file().forked()) (void)state_.release();  // it belongs to the parent
}

void Step::write(std::size_t var, std::span<std::byte const> bytes)
{
    alive(state_, "write").supply(var, const_cast<std::byte*>(bytes.data()), bytes.size(), declared::Op::write);
}

void Step::read(std::size_t var, std::span<std::byte> bytes)
{
    alive(state_, "read").supply(var, bytes.data(), bytes.size(), declared::Op::read);
}

namespace {

void supply(declared::StepState& step, std::size_t var, std::span<std::byte> array, std::size_t element_size,
            ArrayPart const& part, declared::Op op)
{
    auto placed = pattern::place_section(part, static_cast<std::int64_t>(element_size), array.size());
    auto* const first = placed && array.data() ? array.data() + placed->begin : nullptr;
    step.supply(var, first, placed.map([](auto& found) { return std::move(found.shape); }), op);
}

}  // namespace

void Step::write_section(std::size_t var, std::span<std::byte const> array, std::size_t element_size,
                         ArrayPart const& part)
{
    std::span const bytes(const_cast<std::byte*>(array.data()), array.size());
    supply(alive(state_, "write"), var, bytes, element_size, part, declared::Op::write);
}

void Step::read_section(std::size_t var, std::span<std::byte> array, std::size_t element_size, ArrayPart const& part)
{
    supply(alive(state_, "read"), var, array, element_size, part, declared::Op::read);
}

Moved Step::finish()
{
    alive(state_, "finish").start(false);
    return state_->wait();
}

void Step::start()
{
    alive(state_, "start").start(true);
}

bool Step::progress()
{
    return alive(state_, "progress").progress();
}

Moved Step::wait()
{
    return alive(state_, "wait").wait();
}

std::uint64_t Step::received(std::size_t var) const
{
    return alive(state_, "received").received(var);
}

void Step::rebase(std::int64_t offset)
{
    alive(state_, "rebase").rebase(offset);
}

void Step::retarget(File& file)
{
    (void)alive(file.state_, "retarget");
    alive(state_, "retarget").retarget(file.state_);
}

Plan Step::plan() const
{
    auto const& plan = alive(state_, "plan").plan();
    auto const& settings = state_->file().settings;
    return {plan::explain(plan, settings::describe(settings)) + state_->choice().explain() + state_->explain_subfiles(),
            report::to_json(plan, settings)};
}

}  // namespace tapioca
