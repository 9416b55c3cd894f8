#include "launcher.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace tools {

namespace {

using tapioca::Errc;
namespace core = tapioca::core;

/// Options by the number of words that follow them, without dashes. `letters`: -n4 and -lu are understood, as with
/// getopt.
struct Table {
    bool letters;
    std::string_view two, one, none;
};

Table const open_mpi_options = {
    false, "mca gmca omca gomca prtemca pmixmca gpmixmca",
    "x n np c N H host hostfile machinefile default-hostfile app am tune bind-to map-by rank-by ppr cf cartofile "
    "cpu-list cpu-set cpus-per-proc cpus-per-rank debugger hnp launch-agent max-restarts max-vm-size "
    "npernode "
    "npersocket ompi-server output output-filename path personality prefix preload-files report-events report-pid "
    "report-uri rf rankfile stdin timeout wd wdir xml-file xterm display runtime-options with-ft dvm-uri pset",
    "allow-run-as-root oversubscribe nooversubscribe use-hwthread-cpus bind-to-core bind-to-socket bycore bynode "
    "byslot "
    "pernode nolocal display-map display-allocation display-topo display-devel-map report-bindings tag-output "
    "timestamp-output merge-stderr-to-stdout q quiet v verbose V version h help d debug debug-daemons debug-devel "
    "noprefix novm s preload-binary xml tv get-stack-traces continuous enable-recovery disable-recovery do-not-launch "
    "leave-session-attached show-progress report-state-on-timeout index-argv-by-rank set-cwd-to-session-dir"};

Table const hydra_options = {  // including Intel's
    false, "genv env",
    "n np f hosts hostfile host hostlist machinefile machine wdir configfile genvlist genvexcl envlist envexcl "
    "launcher "
    "launcher-exec bootstrap bootstrap-exec rmk topolib bind-to binding map-by membind demux iface ppn perhost grr "
    "prepend-pattern outfile-pattern errfile-pattern nameserver order-nodes localhost usize gpus-per-proc path umask "
    "arch s branch-count gtool gtoolfile aps-options ckpoint-interval ckpoint-prefix ckpointlib timeout",
    "genvnone genvall envnone envall v verbose info version V h help print-all-exitcodes print-rank-map profile "
    "prepend-rank l disable-auto-cleanup enable-auto-cleanup disable-hostname-propagation pmi-port skip-launch-node "
    "enable-x disable-x rr nolocal ordered-output aps cleanup"};

Table const srun_options = {
    true, "",
    "A B c C d D e G i J L m M n N o p q r S t T w W x account acctg-freq bb bbf begin cluster-constraint clusters "
    "comment constraint container context core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task "
    "chdir deadline delay-boot dependency distribution epilog error exclude export export-file extra extra-node-info "
    "gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input "
    "jobid job-name licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi "
    "msg-timeout network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node "
    "ntasks-per-socket ntasks-per-tres open-mode output pack-group partition power prefer priority profile prolog qos "
    "relative reservation signal slurmd-debug sockets-per-node switches task-epilog task-prolog thread-spec threads "
    "threads-per-core time time-min tmp treewidth tres-bind tres-per-task uid wait wckey",
    "E H I k K l O Q s u v V X Z h contiguous disable-status exact exclusive external-launcher hold immediate "
    "interactive join label multi-prog no-allocate no-kill kill-on-bad-exit overcommit overlap oversubscribe "
    "preserve-env propagate pty quiet quit-on-interrupt reboot send-libs share spread-job test-only unbuffered "
    "use-min-nodes verbose version whole x11 bcast compress nice resv-ports"};

Table const aprun_options = {true, "",
                             "n N d S j L l e m p r t cc cp sl sn F C D E a pes pes-per-node cpus-per-pe "
                             "environment-override memory-per-pe architecture",
                             "q b B R T v ss V h"};

/// A program that starts another: its options, and the number of its own words before the other's name.
struct Wrapper {
    std::string_view name;
    Table options;
    int operands;
};

std::vector<Wrapper> const& wrappers()
{
    static std::vector<Wrapper> const all = {
        {"env", {true, "", "u unset C chdir", "i ignore-environment 0 null v debug"}, 0},
        {"nice", {true, "", "n adjustment", ""}, 0},
        {"nohup", {true, "", "", ""}, 0},
        {"setsid", {true, "", "", "c f w ctty fork wait"}, 0},
        {"time", {true, "", "f o format output", "p a v portability append verbose"}, 0},
        {"timeout", {true, "", "k s kill-after signal", "v verbose preserve-status foreground"}, 1},
        {"stdbuf", {true, "", "i o e input output error", ""}, 0},
        {"ionice", {true, "", "c n class classdata", "t ignore"}, 0},
        {"chrt", {true, "", "T P D", "a b f i o r d R v"}, 1},
        {"taskset", {true, "", "", "a c all-tasks cpu-list"}, 1},
        {"numactl",
         {true, "",
          "i N m C p P w interleave cpunodebind membind physcpubind preferred preferred-many weighted-interleave",
          "l a localalloc all balancing"},
         0},
        {"valgrind", {false, "", "", "v q verbose quiet"}, 0},
        {"strace", {true, "", "a b e E I o O p P s S u X", "c C d f F h i k n q r t T v V w x y z Z"}, 0},
    };
    return all;
}

bool has(std::string_view names, std::string_view name)
{
    for (std::size_t from = 0; from < names.size();) {
        auto const to = std::min(names.find(' ', from), names.size());
        if (names.substr(from, to - from) == name) return true;
        from = to + 1;
    }
    return false;
}

std::string file_name(std::string const& path)
{
    return path.substr(path.rfind('/') + 1);
}

bool is_assignment(std::string const& word)
{
    auto const equals = word.find('=');
    return equals != std::string::npos && equals > 0 && word[0] != '-' && word.find('/') > equals;
}

/// A walk along words[.., end): options, then the first word that is not an option.
struct Walk {
    Words const& words;
    std::size_t at, end;
    IsProgram const& is_program;
    std::vector<Option> options{};

    /// The number of words after this one that are values of `name`.
    [[nodiscard]] std::size_t values(Table const& table, std::string_view name) const
    {
        if (has(table.two, name)) return 2;
        if (has(table.one, name)) return 1;
        if (has(table.none, name) || at + 1 >= end) return 0;
        return words[at + 1].starts_with('-') || is_program(words[at + 1]) ? 0 : 1;
    }

    void take_long(Table const& table)
    {
        auto const& word = words[at];
        auto const dashes = std::min(word.find_first_not_of('-'), word.size());
        auto const equals = word.find('=');
        Option option{word.substr(dashes, equals - dashes), at, {}, at};
        bool const with_value = equals != std::string::npos;
        if (with_value) option.values.push_back(word.substr(equals + 1));
        auto const wanted = with_value && !has(table.two, option.name) ? 1 : values(table, option.name);
        while (option.values.size() < wanted && at + 1 < end) {
            if (wanted == 2 && option.values.size() == 1 && is_assignment(option.values[0])) break;  // -genv NAME=VALUE
            option.values.push_back(words[++at]);
            option.last = at;
        }
        options.push_back(std::move(option));
        ++at;
    }

    void take_letters(Table const& table)
    {
        auto const word = words[at];
        for (std::size_t k = 1; k < word.size(); ++k) {
            Option option{word.substr(k, 1), at, {}, at};
            bool const is_last = k + 1 == word.size();
            if (has(table.one, option.name) && !is_last) {
                option.values.push_back(word.substr(k + 1));
                k = word.size();
            } else if (is_last && values(table, option.name) == 1 && at + 1 < end) {
                option.values.push_back(words[++at]);
                option.last = at;
            }
            options.push_back(std::move(option));
        }
        ++at;
    }

    void pass_options(Table const& table)
    {
        while (at < end && words[at].size() > 1 && words[at][0] == '-') {
            if (words[at] == "--") {
                ++at;
                return;
            }
            auto const name = words[at].substr(1);
            bool const whole = has(table.one, name) || has(table.none, name);
            table.letters&& words[at][1] != '-' && !whole ? take_letters(table) : take_long(table);
        }
    }
};

/// Skips wrappers from part.starts on. If one is used in an unknown way, it is taken as the program itself.
void unwrap(Words const& words, LaunchedProgram& part, IsProgram const& is_program)
{
    part.program = part.starts;
    while (part.program < part.end) {
        auto const name = file_name(words[part.program]);
        auto const& all = wrappers();
        auto const wrapper = std::find_if(all.begin(), all.end(), [&](auto const& w) { return w.name == name; });
        if (wrapper == all.end()) return;
        Walk walk{words, part.program + 1, part.end, is_program};
        walk.pass_options(wrapper->options);
        auto next = walk.at + static_cast<std::size_t>(wrapper->operands);
        auto cleared = false;
        std::vector<std::size_t> preloads;
        std::string library_path;
        if (name == "env") {
            for (auto const& option : walk.options)
                cleared = cleared || option.name == "i" || option.name == "ignore-environment";
            if (next < part.end && words[next] == "-") {
                cleared = true;
                ++next;
            }
            for (; next < part.end && is_assignment(words[next]); ++next) {
                if (words[next].starts_with("LD_PRELOAD=")) preloads.push_back(next);
                if (words[next].starts_with("LD_LIBRARY_PATH=")) library_path = words[next].substr(16);
            }
        }
        if (next >= part.end || words[next].starts_with('-')) return;
        part.program = next;
        part.cleared = part.cleared || cleared;
        part.preloads.insert(part.preloads.end(), preloads.begin(), preloads.end());
        if (!library_path.empty()) part.library_path = library_path;
    }
}

Table const& table_of(Launcher launcher)
{
    switch (launcher) {
    case Launcher::open_mpi: return open_mpi_options;
    case Launcher::srun: return srun_options;
    case Launcher::aprun: return aprun_options;
    default: return hydra_options;
    }
}

/// For options that set a variable: splits its name and its value into two values, however they were written.
void split_assignment(Launcher launcher, Option& option)
{
    bool const sets = (launcher == Launcher::open_mpi && option.name == "x") ||
                      (launcher == Launcher::aprun && (option.name == "e" || option.name == "environment-override")) ||
                      ((launcher == Launcher::hydra || launcher == Launcher::other) &&
                       (option.name == "genv" || option.name == "env"));
    if (!sets || option.values.size() != 1) return;
    auto const text = option.values[0];
    if (auto const equals = text.find('='); equals != std::string::npos)
        option.values = {text.substr(0, equals), text.substr(equals + 1)};
}

core::Status read_part(Command& command, LaunchedProgram part, IsProgram const& is_program)
{
    Walk walk{command.words, part.first, part.end, is_program};
    walk.pass_options(table_of(command.kind));
    part.options = std::move(walk.options);
    part.starts = walk.at;
    bool listed = false;  // in a file
    for (auto& option : part.options) {
        split_assignment(command.kind, option);
        auto const& name = option.name;
        if (option.values.empty()) {
            listed = listed || name == "multi-prog";
            continue;
        }
        auto const& value = option.values[0];
        if (command.kind == Launcher::open_mpi && name == "app")
            return core::fail(
                Errc::unsupported,
                fmt::format(
                    "--app {}: Open MPI passes no variables to programs of an app file; write the programs into the "
                    "command, separated by :",
                    value));
        if (command.kind == Launcher::open_mpi && value == "mca_base_env_list")
            return core::fail(
                Errc::unsupported,
                "mca_base_env_list: Open MPI does not accept it together with -x, which tapioca run adds; use "
                "-x NAME=VALUE for each variable");
        if (name == "wdir" || name == "wd" || name == "D" || name == "chdir") part.directory = value;
        if (option.values.size() == 2 && value == "LD_LIBRARY_PATH") part.library_path = option.values[1];
        listed = listed || name == "configfile";
    }
    if (listed)
        part.program = part.end;
    else if (part.starts >= part.end)
        return core::fail(Errc::invalid_argument, fmt::format("no program in: {}", fmt::join(command.words, " ")));
    else
        unwrap(command.words, part, is_program);
    command.parts.push_back(std::move(part));
    return {};
}

}  // namespace

Launcher launcher_by_name(std::string const& path)
{
    static std::map<std::string_view, Launcher> const names = {{"orterun", Launcher::open_mpi},
                                                               {"prterun", Launcher::open_mpi},
                                                               {"prun", Launcher::open_mpi},
                                                               {"mpirun.openmpi", Launcher::open_mpi},
                                                               {"mpiexec.openmpi", Launcher::open_mpi},
                                                               {"mpiexec.hydra", Launcher::hydra},
                                                               {"mpirun.mpich", Launcher::hydra},
                                                               {"mpiexec.mpich", Launcher::hydra},
                                                               {"srun", Launcher::srun},
                                                               {"aprun", Launcher::aprun},
                                                               {"mpirun", Launcher::other},
                                                               {"mpiexec", Launcher::other}};
    auto const known = names.find(file_name(path));
    return known == names.end() ? Launcher::none : known->second;
}

Launcher launcher_by_version(std::string const& text)
{
    auto const says = [&](char const* words) { return text.find(words) != std::string::npos; };
    if (says("Open MPI") || says("OpenRTE") || says("PRRTE")) return Launcher::open_mpi;
    if (says("HYDRA") || says("Intel(R) MPI") || says("MPICH")) return Launcher::hydra;
    if (says("slurm")) return Launcher::srun;
    return Launcher::other;
}

std::size_t behind_wrappers(Words const& words, IsProgram const& is_program)
{
    LaunchedProgram part;
    part.end = words.size();
    unwrap(words, part, is_program);
    return part.program;
}

core::Result<Command> read_command(Words const& words, Launcher launcher, IsProgram const& is_program)
{
    Command command;
    command.words = words;
    command.kind = launcher;
    LaunchedProgram before;
    before.end = words.size();
    unwrap(words, before, is_program);
    if (launcher == Launcher::none) {
        command.launcher = words.size();
        command.parts.push_back(std::move(before));
        return command;
    }
    command.launcher = before.program;
    for (auto const at : before.preloads) command.preload = words[at].substr(words[at].find('=') + 1);
    for (auto first = before.program + 1; first <= words.size();) {
        auto const begin = words.begin() + static_cast<std::ptrdiff_t>(first);
        LaunchedProgram part;
        part.first = first;
        part.end = static_cast<std::size_t>(std::find(begin, words.end(), ":") - words.begin());
        first = part.end + 1;
        part.library_path = before.library_path;
        if (auto const status = read_part(command, std::move(part), is_program); !status)
            return tl::unexpected(status.error());
    }
    return command;
}

}  // namespace tools
