// See fuzz_judge.hpp.
#include "fuzz_judge.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fuzz {

char const* name_of(What what)
{
    static constexpr char const* names[] = {"error class",
                                            "count",
                                            "elements",
                                            "individual pointer",
                                            "shared pointer",
                                            "answers",
                                            "buffer",
                                            "bytes that were not read",
                                            "calls of the error handler",
                                            "file",
                                            "holes of the file"};
    return names[static_cast<int>(what)];
}

namespace {

/// Bytes of both buffers that may not be what they ought to be: these are taken out and judged by themselves.
void take_out(Bytes& buffer, Bytes const& expected, std::vector<std::int64_t> const& places, bool& right)
{
    for (auto place : places) {
        auto const at = static_cast<std::size_t>(place);
        right = right && buffer[at] == expected[at];
        buffer[at] = expected[at];
    }
}

}  // namespace

std::vector<Finding> judge(Step const& step, Part const& part, Observed const& alone_seen, Observed const& t,
                           bool handlers)
{
    auto const& a = alone_seen.error_class != MPI_SUCCESS && !step.fails ? t : alone_seen;
    std::vector<Finding> findings;
    auto note = [&](What what, bool alone, bool through, bool equal) {
        if (!alone || !through) findings.push_back({what, alone, through, equal});
    };
    auto same = [&](What what, auto const& alone, auto const& through, auto const& expected) {
        note(what, alone == expected, through == expected, alone == through);
    };
    bool const alone_failed = alone_seen.error_class != MPI_SUCCESS;
    bool const through_failed = t.error_class != MPI_SUCCESS;
    if (step.fails) {  // which class it is the standard rarely says
        note(What::Class, alone_failed, through_failed && (!alone_failed || t.error_class == a.error_class),
             a.error_class == t.error_class);
        if (step.what != Do::Open && step.what != Do::Null)
            same(What::Handler, a.handler_calls, t.handler_calls, handlers ? 1 : 0);
    } else {
        same(What::Class, alone_seen.error_class, t.error_class, MPI_SUCCESS);
        if (through_failed) return findings;
        same(What::Handler, a.handler_calls, t.handler_calls, 0);
    }
    if (step.what == Do::Data) {
        if (!step.fails) {
            auto const size = part.type->size;
            std::int64_t const count = size == 0 ? 0 : part.moved % size == 0 ? part.moved / size : MPI_UNDEFINED;
            same(What::Elements, a.elements, t.elements, part.moved);
            same(What::Count, a.count, t.count, count);
        }
        auto alone = a.buffer;
        auto through = t.buffer;
        bool rights[2] = {true, true};
        bool whatever = true;
        take_out(alone, part.after, part.unread, rights[0]);
        take_out(alone, part.after, part.holes, whatever);  // the file is judged for them
        take_out(alone, part.after, part.loose_holes, whatever);
        take_out(through, part.after, part.loose_holes, whatever);
        if (!step.served) {
            take_out(through, part.after, part.unread, rights[1]);
        }
        note(What::Unread, rights[0], rights[1], false);
        same(What::Buffer, alone, through, part.after);
    }
    if (step.what == Do::Query) same(What::Values, a.values, t.values, part.values);
    if (a.has_position && t.has_position) same(What::Position, a.position, t.position, part.position);
    if (step.shared >= 0) same(What::Shared, a.shared, t.shared, step.shared);
    return findings;
}

namespace {

/// A set of subfiles, whose own file is only a stub, as a program sees it.
Contents read_set(std::string const& path)
{
    Contents contents{true, {}};
    MPI_File file = MPI_FILE_NULL;
    MPI_Offset size = 0;
    if (MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return contents;
    MPI_File_get_size(file, &size);
    contents.bytes.resize(static_cast<std::size_t>(size));
    MPI_Status status;
    int got = 0;
    MPI_File_read_at(file, 0, contents.bytes.data(), static_cast<int>(size), MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    contents.bytes.resize(static_cast<std::size_t>(got));
    MPI_File_close(&file);
    return contents;
}

}  // namespace

Contents read_file(std::string const& path)
{
    Contents contents;
    int const file = ::open(path.c_str(), O_RDONLY);
    if (file < 0) return contents;
    contents.exists = true;
    struct stat about {};
    fstat(file, &about);
    contents.bytes.resize(static_cast<std::size_t>(about.st_size));
    auto const got = pread(file, contents.bytes.data(), contents.bytes.size(), 0);
    contents.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    ::close(file);
    std::string const head(contents.bytes.begin(), contents.bytes.begin() + std::min<long>(64, got));
    return head.find("TAPIOCA subfile set") == std::string::npos ? contents : read_set(path);
}

void write_file(std::string const& path, Contents const& contents)
{
    if (!contents.exists) {
        unlink(path.c_str());
        return;
    }
    auto const& bytes = contents.bytes;
    int const file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        std::fprintf(stderr, "fuzz: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    ::close(file);
}

std::vector<Finding> judge_files(Step const& step, Contents a, Contents t, std::string& said)
{
    Contents const expected{step.exists, *step.contents};
    if (a == expected && t == expected) return {};
    bool holes[2] = {true, true};
    bool strict[2] = {true, true};  // holes that nobody may have filled
    for (std::size_t i = 0; i < expected.bytes.size(); ++i) {
        auto const state = (*step.defined)[i];
        if (state == Model::written) continue;
        for (auto* which : {&a, &t}) {
            if (i >= which->bytes.size() || which->bytes[i] == 0) continue;
            bool const loose = state == Model::loose_hole || (state == Model::alone_loose_hole && which == &a);
            (loose ? holes : strict)[which == &a ? 0 : 1] = false;
            which->bytes[i] = 0;
        }
    }
    std::vector<Finding> findings;
    if (!strict[0] || !strict[1]) {
        findings.push_back({What::File, strict[0], strict[1], strict[0] == strict[1]});
        said +=
            std::string("  garbage in holes of") + (strict[0] ? "" : " alone") + (strict[1] ? "" : " through") + "\n";
    }
    if (!holes[0] || !holes[1]) findings.push_back({What::Holes, holes[0], holes[1], holes[0] == holes[1]});
    if (a == expected && t == expected) return findings;
    findings.push_back({What::File, a == expected, t == expected, a == t});
    for (auto const* which : {&a, &t}) {
        auto const at =
            std::mismatch(which->bytes.begin(), which->bytes.end(), expected.bytes.begin(), expected.bytes.end())
                .first -
            which->bytes.begin();
        said += std::string("  ") + (which == &a ? "alone: " : "through: ") + (which->exists ? "" : "is absent, ") +
                std::to_string(which->bytes.size()) + " bytes, expected " + std::to_string(expected.bytes.size()) +
                ", first difference at " + std::to_string(at) + "\n";
    }
    return findings;
}

}  // namespace fuzz
