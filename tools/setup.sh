# Sourced by ./demo, ./test and suites of tests/run: installs what is missing from the distribution's packages, and says so.

setup_name=$0 # what error messages begin with
setup_fail() { echo "$setup_name: $*" >&2; exit 1; }

# setup_packages PACKAGE...
setup_packages() {
    local id="" like="" missing=() package
    if [ -r /etc/os-release ]; then
        id=$(. /etc/os-release && echo "${ID:-}")
        like=$(. /etc/os-release && echo "${ID_LIKE:-}")
    fi
    case " $id $like " in
    *" debian "* | *" ubuntu "*) ;;
    *) setup_fail "this system (${id:-unknown}) is neither Debian nor Ubuntu: install the equivalents of '$*' and build with CMake (docs/install.md)" ;;
    esac
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        echo "packages: all there"
        return
    fi
    echo "packages: installing ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || setup_fail "not root and no sudo: install ${missing[*]} first"
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq || setup_fail "apt-get update failed"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        setup_fail "apt-get install failed: see the lines above"
}

# What the build tool says on its input, in short: on a terminal one line that changes, elsewhere a line every 10 s.
setup_progress() {
    local line done all what told=$SECONDS
    while IFS= read -r line; do
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\].*\ ([^ ]+)$ ]] || continue
        done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} what=${BASH_REMATCH[3]%.o}
        [[ ! $what =~ ^(.*/)?CMakeFiles/([^/]+)\.dir/(.*)$ ]] || case ${BASH_REMATCH[3]} in
            Unity/*) what="${BASH_REMATCH[2]}, several sources" ;;
            *) what=${BASH_REMATCH[1]}${BASH_REMATCH[3]//__/..} ;;
        esac
        printf -v line '[%*d/%d] %s' ${#all} "$done" "$all" "${what:0:60}"
        if [ -t 1 ]; then
            printf '\r\033[K%s' "$line"
        elif [ $((SECONDS - told)) -ge 10 ]; then
            told=$SECONDS
            echo "$line"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

# setup_build PRESET[:NAME] [CMAKE OPTION...]: configures and builds build/NAME [build/PRESET], and shows how far it is;
# of it only what $setup_target names, if that is set. All that is said goes to build/NAME.log.
setup_build() {
    local preset=${1%:*} name=${1#*:} start=$SECONDS status
    local log=build/$name.log
    shift
    mkdir -p build
    echo "building build/$name ..."
    # shellcheck disable=SC2086
    { cmake --preset "$preset" -B "build/$name" "$@" && cmake --build "build/$name" ${setup_target:+--target $setup_target}; } 2>&1 |
        tee "$log" | setup_progress && status=0 || status=$?
    [ $status -eq 0 ] || { tail -n 60 "$log" >&2; setup_fail "building $name failed: the whole log is $log"; }
    echo "building build/$name: $((SECONDS - start)) s"
}

setup_core_packages=(g++ cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libhwloc-dev libfmt-dev
    libexpected-dev nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libxxhash-dev)
