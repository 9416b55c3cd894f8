#!/usr/bin/env bash
# install_test.sh SOURCE BUILD CMAKE MPICC MPICXX MPIFORT|none LAUNCHER...
# Installs into a scratch prefix, moves it, and uses it from outside: from C++, C and Fortran, through find_package and
# through pkg-config, on 2 ranks.
set -euo pipefail
source=$1 build=$2 cmake=$3 mpicc=$4 mpicxx=$5 mpifort=$6
shift 6
launcher=("$@")
here=$source/tests/install
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-install-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "install_test: $*" >&2; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }; }
command -v pkg-config >/dev/null || fail "no pkg-config (Debian: pkg-config)"

quietly "$cmake" --install "$build" --prefix "$work/first"
prefix=$work/moved/here
mkdir "$work/moved" && mv "$work/first" "$prefix"
unset LD_LIBRARY_PATH

# what is there, and nothing else
(cd "$source/include/tapioca" && ls && echo built_for.h) >"$work/wanted"
(cd "$prefix/include/tapioca" && find . -maxdepth 1 -type f -printf '%P\n' | sort) >"$work/found"
diff <(sort "$work/wanted") "$work/found" || fail "headers differ from include/tapioca"
[ "$(ls "$prefix/include")" = tapioca ] || fail "more than tapioca/ in include"
[ -z "$(find "$prefix" -name '*.a')" ] || fail "internal libraries: $(find "$prefix" -name '*.a')"
! grep -rlF "$work/first" "$prefix" --include='*.cmake' --include='*.pc' || fail "the prefix is written into the files above"
[ -n "$(find "$prefix" -path '*/tapioca/*/libtapioca_mpiio.so')" ] || fail "no drop-in library under its MPI's name"
[ -s "$prefix/share/man/man1/tapioca.1" ] || fail "no man page"
quietly "$prefix/bin/tapioca" --version
quietly "$prefix/bin/tapioca-bench" hacc --help
quietly "$prefix/bin/tapioca" calibrate --help
quietly "$prefix/bin/tapioca-cluster" --help

printf 'rank 0\nrank 1\n' >"$work/right"
try() { # NAME PROGRAM
    quietly "${launcher[@]}" -n 2 "$2" "$work/$1.dat"
    cmp "$work/$1.dat" "$work/right" || fail "$1 wrote something else"
    echo "install_test: $1"
}

languages=(c cxx)
[ "$mpifort" = none ] || languages+=(fortran)
for language in "${languages[@]}"; do
    quietly "$cmake" -G Ninja -S "$here/$language" -B "$work/$language" -D CMAKE_PREFIX_PATH="$prefix" \
        -D CMAKE_BUILD_TYPE=Release
    ! grep -A5 "CMake Warning" "$work/log" || fail "find_package warns"
    quietly "$cmake" --build "$work/$language"
    try "$language-find_package" "$work/$language/consumer"
done

lib=$(dirname "$(find "$prefix" -name libtapioca.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig
with() { pkg-config --cflags --libs "$1"; }
quietly "$mpicc" -std=c99 "$here/c/main.c" $(with tapioca) -Wl,-rpath,"$lib" -o "$work/c-pc"
try c-pkg-config "$work/c-pc"
quietly "$mpicxx" -std=c++20 "$here/cxx/main.cpp" $(with tapioca) -Wl,-rpath,"$lib" -o "$work/cxx-pc"
try cxx-pkg-config "$work/cxx-pc"
if [ "$mpifort" != none ]; then
    quietly "$mpifort" "$here/fortran/main.f90" $(with tapioca-fortran) -Wl,-rpath,"$lib" -J "$work" -o "$work/fortran-pc"
    try fortran-pkg-config "$work/fortran-pc"
fi

# with the headers of another MPI: one line, in C and in C++
case $("$prefix/bin/tapioca" --version) in
*"Open MPI"*) other=mpich says="this TAPIOCA was built for Open MPI, and <mpi.h> is another MPI's" ;;
*) other=openmpi says="this TAPIOCA was built for MPICH or its kin, and <mpi.h> is Open MPI's" ;;
esac
refused() { # COMPILER SOURCE OPTIONS...
    command -v "$1" >/dev/null || { echo "install_test: no $1, so it is not tried"; return; }
    ! "$1" "${@:3}" -fsyntax-only "$2" $(pkg-config --cflags tapioca) >"$work/log" 2>&1 || fail "$1 compiles $2"
    [ "$(grep -c 'error:' "$work/log")" = 1 ] && grep -qF "$says" "$work/log" || { cat "$work/log"; fail "$1 is not refused in one line"; }
    echo "install_test: $1 is refused"
}
refused "mpicc.$other" "$here/c/main.c" -std=c99
refused "mpicxx.$other" "$here/cxx/main.cpp" -std=c++20

# the drop-in library: loaded by `tapioca run`, and linked
quietly "$mpicc" "$here/dropin/main.c" -o "$work/dropin"
quietly "$prefix/bin/tapioca" run -- "${launcher[@]}" -n 2 "$work/dropin" "$work/dropin-run.dat"
cmp "$work/dropin-run.dat" "$work/right" || fail "the drop-in library wrote something else"
echo "install_test: dropin-run"
quietly "$mpicc" "$here/dropin/main.c" -Wl,--no-as-needed -L"$lib" -ltapioca_mpiio -Wl,-rpath,"$lib" -o "$work/dropin-linked"
try dropin-linked "$work/dropin-linked"

[ "$(pkg-config --modversion tapioca)" = "$(sed -n 's/^project(tapioca VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")" ] ||
    fail "pkg-config has another version than the project"
grep -qF "VERSION_STRING \"$(pkg-config --modversion tapioca)\"" "$prefix/include/tapioca/version.h" ||
    fail "version.h has another version than pkg-config"
grep -q "tapioca $(pkg-config --modversion tapioca)" "$prefix/share/man/man1/tapioca.1" || fail "the man page has another version"
