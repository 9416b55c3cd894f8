// main() of the multi-rank tests: every rank runs every test, failures name their rank, and all ranks return
// the same exit code.
#include <cstdio>
#include <memory>
#include <sstream>

#include "support/mpi_test.hpp"

namespace {

/// Replaces GoogleTest's printer, whose lines of all ranks would mix.
class RankPrinter final : public testing::EmptyTestEventListener {
public:
    void OnTestPartResult(testing::TestPartResult const& result) override
    {
        if (!result.failed()) {
            if (result.skipped() && tapioca::test::rank() == 0) std::printf("  skipped: %s\n", result.message());
            return;
        }
        std::ostringstream text;
        text << "[rank " << tapioca::test::rank() << "/" << tapioca::test::ranks() << "] "
             << (result.file_name() ? result.file_name() : "?") << ":" << result.line_number() << ": "
             << result.message() << "\n";
        std::fputs(text.str().c_str(), stderr);
    }
    void OnTestStart(testing::TestInfo const& test) override
    {
        if (tapioca::test::rank() != 0) return;
        std::printf("%s.%s\n", test.test_suite_name(), test.name());
        std::fflush(stdout);
    }
    /// Keeps the ranks together between tests.
    void OnTestEnd(testing::TestInfo const& test) override
    {
        bool const passed = tapioca::test::on_all_ranks(!test.result()->Failed());
        passed_all_ = passed_all_ && passed;
        if (tapioca::test::rank() != 0) return;
        ++tests_;
        std::printf("  %s in %lld ms\n", passed ? "passed" : "FAILED",
                    static_cast<long long>(test.result()->elapsed_time()));
        std::fflush(stdout);
    }
    [[nodiscard]] bool passed_all() const { return passed_all_; }
    [[nodiscard]] int tests() const { return tests_; }

private:
    bool passed_all_ = true;
    int tests_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    auto* const printer = new RankPrinter;
    listeners.Append(printer);

    int const result = RUN_ALL_TESTS();
    bool const passed = tapioca::test::on_all_ranks(result == 0 && printer->passed_all());
    if (tapioca::test::rank() == 0)
        std::printf("%d tests on %d ranks: %s\n", printer->tests(), tapioca::test::ranks(), passed ? "ok" : "FAILED");
    MPI_Finalize();
    return passed ? 0 : 1;
}
