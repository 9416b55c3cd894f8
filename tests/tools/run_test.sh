#!/usr/bin/env bash
# run_test.sh BIN CMAKE MPICC LAUNCHER... (MPICH's with -genv LD_PRELOAD SHIM): tapioca run from a user's side: the library is in every rank and not in the
# launcher, commands are rewritten as each launcher wants it, and what cannot be served is refused in one line.
set -euo pipefail
verb=run
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
mpicc=$3
shift 3
launcher=("$@")
unset LD_PRELOAD SLURM_EXPORT_ENV TAPIOCA_REPORT

# Without the library in the build a stub of its name will do: what counts here is where it is loaded.
echo '#include <mpi.h>
int tapioca_stub(void) { return MPI_Initialized(&(int){0}); }' >stub.c
"$mpicc" -shared -fPIC -o stub.so stub.c
installed() { # FOLDER LIBRARY: the command with another library
    mkdir -p "$1/bin" "$1/lib"
    cp "$built/tapioca" "$1/bin"
    cp "$2" "$1/lib/libtapioca_mpiio.so"
}
built=$bin
if [ ! -e "$bin/../lib/libtapioca_mpiio.so" ]; then
    installed inst stub.so
    bin=$work/inst/bin
fi
library=$(readlink -f "$bin/../lib")/libtapioca_mpiio.so
tapioca=$bin/tapioca

# Tells whether the library is in this process and in its parent, and what is preloaded.
cat >app.c <<'EOF2'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int loaded(char const* maps)
{
    char line[4096];
    int found = 0;
    FILE* const file = fopen(maps, "r");
    while (file && fgets(line, sizeof line, file)) found |= strstr(line, "libtapioca_mpiio.so") != NULL;
    if (file) fclose(file);
    return found;
}
int main(int argc, char** argv)
{
    char parent[64];
    int size, rank;
    snprintf(parent, sizeof parent, "/proc/%d/maps", getppid());
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char const* const report = getenv("TAPIOCA_REPORT");
    printf("%s of %d: self %d parent %d report %s LD_PRELOAD=%s\n", argc > 1 ? argv[1] : "rank", size,
           loaded("/proc/self/maps"), loaded(parent), report ? report : "none", getenv("LD_PRELOAD"));
    MPI_Finalize();
    return rank == 0 && argc > 2 ? atoi(argv[2]) : 0;
}
EOF2
"$mpicc" -o app app.c
printf 'int tool;' | cc -shared -fPIC -x c -o libtool.so -
cat >script.py <<'EOF2'
print("script: self", int("libtapioca_mpiio.so" in open("/proc/self/maps").read()))
EOF2
is_open_mpi=false
"$tapioca" --version | grep -q 'Open MPI' && is_open_mpi=true
ranks() { # NUMBER REGULAR-EXPRESSION: so many lines of the last output
    [ "$(grep -cE "$2" "$work/out")" -eq "$1" ] || fail "not $1 lines '$2' in the output"
}

# In every rank, not in the launcher; the exit status is the command's.
status=0
"$tapioca" run --report io.json -- "${launcher[@]}" -n 2 ./app rank 7 >"$work/out" 2>&1 || status=$?
[ $status -eq 7 ] || fail "status $status instead of the program's"
ranks 2 '^rank of 2: self 1 parent 0 report io.json LD_PRELOAD='"$library"

# Several programs, wrappers, scripts, and libraries that the user preloads.
if $is_open_mpi; then
    users=(-x "LD_PRELOAD=$work/libtool.so")
else
    users=(-env LD_PRELOAD "$work/libtool.so:${launcher[3]}")
fi
shown '^b of 2: self 1 .* LD_PRELOAD='"$library:$work/libtool.so" -- \
    "${launcher[@]}" -n 1 env A=B nice -n 0 ./app a : "${users[@]}" -n 1 ./app b
ranks 1 '^a of 2: self 1'
if command -v python3 >/dev/null; then
    shown '^script: self 1' -- "${launcher[@]}" -n 1 python3 script.py
fi
shown '^alone of 1: self 1 .* LD_PRELOAD='"$library:$work/libtool.so"'$' -- env LD_PRELOAD="$work/libtool.so" ./app alone

# What is run, word by word.
golden() { # LINE ARGUMENTS...
    local line=$1
    shift
    "$tapioca" run --dry-run "$@" >"$work/out" 2>&1 || fail "tapioca run --dry-run $* failed"
    [ "$(cat "$work/out")" = "$line" ] || fail "expected: $line"
}
mkdir fake
printf '#!/bin/sh\necho "mpirun (Open MPI) 5.0.3"\n' >fake/mpirun
printf '#!/bin/sh\necho "HYDRA build details:"\n' >fake/mpiexec
printf '#!/bin/sh\n' | tee fake/srun >fake/aprun
chmod +x fake/*
ours=LD_PRELOAD=$library
true_path=$PATH PATH=$work/fake:$PATH
golden "$ours ./app" -- ./app
golden "$ours TAPIOCA_BUFFERSIZE=4M ./app 'a b'" --set buffersize=4M -- ./app 'a b'
golden "srun --export=ALL,$ours -n4 -lu --mpi=pmix ./app" -- srun -n4 -lu --mpi=pmix ./app
golden "TAPIOCA_CHECK=1 srun --export=A=1,$ours,TAPIOCA_CHECK -N 2 ./app" --set CHECK=1 -- srun --export=A=1 -N 2 ./app
SLURM_EXPORT_ENV=NONE golden "srun --export=$ours ./app" -- srun ./app
if $is_open_mpi; then
    golden "mpirun -x $ours -x TAPIOCA_REPORT=r --mca io ompio -n 2 ./app : -x $ours -x TAPIOCA_REPORT=r -n 1 ./app" \
        --report r -- mpirun --mca io ompio -n 2 ./app : -n 1 ./app
    LD_PRELOAD=$work/libtool.so golden "mpirun -x $ours:$work/libtool.so -n 2 ./app" -- mpirun -x LD_PRELOAD -n 2 ./app
    refused '--app file: Open MPI passes' -- mpirun --app file
else
    golden "mpiexec -genv LD_PRELOAD $library -genv TAPIOCA_REPORT r -n 2 ./app : -n 1 ./app" \
        --report r -- mpiexec -n 2 ./app : -n 1 ./app
    golden "mpiexec -genv LD_PRELOAD $library:x.so -n 2 ./app" -- mpiexec -genv LD_PRELOAD x.so -n 2 ./app
    golden "aprun -e $ours -n 4 -N2 ./app" -- aprun -n 4 -N2 ./app
fi
PATH=$true_path

# What cannot be served.
refused 'no command' --
refused 'no command'
refused 'unknown option --fast' --fast -- ./app
refused 'report needs a value' --report
refused 'did you mean TAPIOCA_BUFFERSIZE' --set BUFERSIZE=4M -- ./app
refused 'TAPIOCA_BUFFERSIZE=fast: expected' --set BUFFERSIZE=fast -- ./app
refused 'expected NAME=VALUE' --set BUFFERSIZE -- ./app
refused 'no_such_launcher: there is no such program' -- no_such_launcher -n 2 ./app
refused './nowhere: there is no such program' -- "${launcher[@]}" -n 2 ./nowhere
refused 'no program in' -- "${launcher[@]}" -n 2
refused './fake is a directory' -- "${launcher[@]}" -n 2 ./fake
refused './app.c is not executable' -- "${launcher[@]}" -n 2 ./app.c
head -c 3000 app >half
printf '\177ELF' >magic
cp app other
printf '\267\000' | dd of=other bs=1 seek=18 conv=notrunc status=none # e_machine
cp app narrow
printf '\001' | dd of=narrow bs=1 seek=4 conv=notrunc status=none # EI_CLASS
cp app setuid
chmod 4755 setuid
chmod +x half magic other narrow
refused './half is damaged' -- "${launcher[@]}" -n 2 ./half
refused './magic is damaged' -- "${launcher[@]}" -n 2 ./magic
refused './other is a 64-bit AArch64 program' -- "${launcher[@]}" -n 2 ./other
refused './narrow is a 32-bit' -- "${launcher[@]}" -n 2 ./narrow
refused './setuid changes its user' -- "${launcher[@]}" -n 2 ./setuid
echo 'int main(void) { return 0; }' >plain.c
if cc -static -o static plain.c 2>/dev/null; then
    refused './static is statically linked' -- "${launcher[@]}" -n 2 ./static
    refused './static is statically linked' -- "${launcher[@]}" -n 1 ./app : -n 2 env A=B ./static
fi
echo 'int MPI_Init(int* c, char*** v) { return !c || !v; }' >mpi.c
echo 'int MPI_Init(int*, char***); int main(int c, char** v) { return MPI_Init(&c, &v); }' >caller.c
cc -o inside caller.c mpi.c
refused './inside has its MPI linked statically' -- "${launcher[@]}" -n 2 ./inside
for mpi in libmpi.so.40 libmpich.so.12 libmpi.so.12 libmpi.so.20; do
    mkdir $mpi.dir
    cc -shared -fPIC -Wl,-soname,$mpi -o $mpi.dir/$mpi mpi.c
    cc -o on_$mpi caller.c $mpi.dir/$mpi -Wl,-rpath,"$work/$mpi.dir"
done
refused 'on_libmpi.so.20 is built on another MPI (libmpi.so.20)' -- "${launcher[@]}" -n 2 ./on_libmpi.so.20
if $is_open_mpi; then
    refused 'is built on MPICH (libmpich.so.12), this tapioca is built on Open MPI (libmpi.so.40)' -- ./on_libmpich.so.12
    refused 'preset mpich' -- ./on_libmpi.so.12
    refused './on_libmpi.so.12 on MPICH' -- "${launcher[@]}" -n 1 ./app : -n 1 ./on_libmpi.so.12
else
    refused 'is built on Open MPI (libmpi.so.40), this tapioca is built on MPICH' -- ./on_libmpi.so.40
    shown "$ours ./on_libmpi.so.12" --dry-run -- ./on_libmpi.so.12
fi
# Libraries that the user preloads are not the program's.
LD_PRELOAD=$work/libmpi.so.20.dir/libmpi.so.20 shown "^$ours:$work/libmpi.so.20.dir/" --dry-run -- ./app

# Libraries that are missing, cannot be loaded or named, or lie beside.
printf 'int gone;' | cc -shared -fPIC -x c -Wl,-soname,libgone.so -o libgone.so -
"$mpicc" -shared -fPIC -Wl,--no-as-needed -o needs.so stub.c libgone.so
installed broken needs.so
bin=$work/broken/bin refused 'needs libgone.so, which is not found' -- ./app
rm broken/lib/libtapioca_mpiio.so
bin=$work/broken/bin refused 'libtapioca_mpiio.so is not in ../lib' -- ./app
installed 'a blank' stub.so
bin="$work/a blank/bin" refused 'cannot name a file with a blank' -- ./app
installed beside stub.so
mkdir -p beside/lib/tapioca/openmpi beside/lib/tapioca/mpich
other=$($is_open_mpi && echo libmpich.so.12 || echo libmpi.so.40)
of_other=beside/lib/tapioca/$($is_open_mpi && echo mpich || echo openmpi)/libtapioca_mpiio.so
cc -shared -fPIC -Wl,--no-as-needed,-rpath,"$work/$other.dir" -o $of_other mpi.c $other.dir/$other
bin=$work/beside/bin shown "^LD_PRELOAD=$work/$of_other ./on_" --dry-run -- ./on_$other
bin=$work/beside/bin shown "^LD_PRELOAD=$work/beside/lib/libtapioca_mpiio.so ./app" --dry-run -- ./app
shown 'same path everywhere' --help
echo "tapioca run: ok"
