#!/usr/bin/env bash
# Compares TAPIOCA with MPI-IO on clusters in a box, and with the minimum rates that it has to reach.
# shellcheck disable=SC1090,SC1091,SC2154
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -m "$here/../..")

usage() {
    cat <<'END'
usage: tests/run cluster [OPTIONS] [PART...]

Parts (default: all of them, about half an hour)
  links      8x1 and 4x2 hosts with links of 1 Gbit and one switch: interleaved blocks of 64 B and 4 KiB, and HACC-IO,
             written cold to a file in memory; TAPIOCA, OMPIO, ROMIO, and what the links allow
  gluster    four hosts that write 4 KiB blocks to a Gluster volume (disperse 2+1) of their own; TAPIOCA, OMPIO, ROMIO,
             and the mount's own rate for contiguous 1 MiB writes (for root only)
  moosefs    the same on MooseFS (for root only)
  ceph       the same on CephFS, with three servers in memory (for root only)
  topology   8x2 hosts behind two switches, trunk of 200 Mbit, three quarters of the data on one of them: HACC-IO, normal
             sizes, under Open MPI and MPICH; TAPIOCA's strategies in turn, with the same number of aggregators
  predictions  8x1 and 4x2 hosts, and 8x1 behind two switches: `tapioca calibrate`, then predicted and measured seconds of
             written and read steps, for each strategy. Where the cores are the limit and not the links, give a lower --link

Options
  --bin DIR      directory of tapioca-bench, built for Open MPI; then nothing is installed or built
  --bin-mpich DIR  the same, built for MPICH, for the part topology; without it, only Open MPI is measured
  --reps N       repetitions [5]
  --link RATE    rate of every host's link [1gbit]
  --bytes BYTES  bytes per rank for interleaved blocks [16M]
  --aggregators N  number of aggregators in the part topology [4]
  --json FILE    file for all figures [cluster.json]

Required are:
  links          0.8 of what the links allow, if 1 % of the data or more must cross; 0.97 of the better MPI-IO, and 3 times
                 its rate at 64 B
  file systems   0.9 of the 1 MiB rate, and 1.0 of the better MPI-IO
  topology       TOPOLOGY_AWARE sends at most 1.3 times the bytes that must cross the trunk and, with the data on the last
                 switch, is 1.5 times as fast as RANK_ORDER, which takes the first hosts
  predictions    within 30 %, and strategies in the predicted order
Exit status: 0 if everything is reached, 1 if not, 2 for bad arguments, 77 if hosts cannot be made.
END
}

fail() { echo "tests/run cluster: $2" >&2; exit "$1"; }

parse() {
    parts=() bin='' bin_mpich='' aggregators=4 reps=5 link=1gbit bytes='' json=$PWD/cluster.json
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) usage; exit 0 ;;
        --bin-mpich)
            [ $# -gt 1 ] || fail 2 "$1 needs a value"
            bin_mpich=$2; shift ;;
        --bin | --reps | --aggregators | --link | --bytes | --json)
            [ $# -gt 1 ] || fail 2 "$1 needs a value"
            printf -v "${1#--}" %s "$2"; shift ;;
        links | gluster | moosefs | ceph | topology | predictions) parts+=("$1") ;;
        *) fail 2 "$1: expected links, gluster, moosefs, ceph, topology or predictions; see --help" ;;
        esac
        shift
    done
    [ ${#parts[@]} -gt 0 ] || parts=(links gluster moosefs ceph topology predictions)
    [[ $reps =~ ^[1-9][0-9]{0,2}$ ]] || fail 2 "--reps $reps: expected a number from 1 to 999"
    [[ $aggregators =~ ^[1-9][0-9]{0,2}$ ]] || fail 2 "--aggregators $aggregators: expected a number from 1 to 999"
    [[ $link =~ ^[1-9][0-9]*[kmg]bit$ ]] || fail 2 "--link $link: expected a rate such as 1gbit"
    [[ $bytes =~ ^([1-9][0-9]*[KM]?)?$ ]] || fail 2 "--bytes $bytes: expected a size such as 4M"
    json=$(readlink -m "$json")
    : >>"$json" || fail 2 "--json: cannot write $json"
}

# Builds, unless --bin was given, and finds the two programs.
prepare() {
    if [ -z "$bin" ]; then
        local packages=(iproute2 util-linux python3) part
        cd "$root"
        . tools/setup.sh
        for part in "${parts[@]}"; do
            [ "$part" != topology ] || packages+=(mpich libmpich-dev)
            [ ! -r "tools/cluster/fs/$part.sh" ] || read -ra packages <<<"${packages[*]} $(. "tools/cluster/fs/$part.sh" && echo "$fs_packages")"
        done
        setup_packages "${setup_core_packages[@]}" "${packages[@]}"
        setup_build release -D MPI_C_COMPILER=mpicc.openmpi -D MPIEXEC_EXECUTABLE="$(command -v mpiexec.openmpi)"
        bin=$root/build/release/bin
        if [[ " ${parts[*]} " == *" topology "* ]]; then
            setup_build release:release-mpich -D MPI_C_COMPILER=mpicc.mpich -D MPIEXEC_EXECUTABLE="$(command -v mpiexec.hydra)" \
                -D TAPIOCA_BUILD_FORTRAN=OFF
            bin_mpich=$root/build/release-mpich/bin
        fi
    fi
    bench=$bin/tapioca-bench
    [ -x "$bench" ] || fail 2 "--bin $bin: there is no tapioca-bench"
    [ -z "$bin_mpich" ] || [ -x "$bin_mpich/tapioca-bench" ] || fail 2 "--bin-mpich $bin_mpich: there is no tapioca-bench"
    for cluster in "$root/tools/cluster/tapioca-cluster" "$bin/tapioca-cluster" "$here/tapioca-cluster"; do
        [ ! -x "$cluster" ] || return 0
    done
    fail 2 "tapioca-cluster is neither in tools/cluster nor beside tapioca-bench"
}

# Whether hosts can be made, and whether this TAPIOCA runs on them.
probe() {
    local status=0
    "$cluster" 2x1 --timeout 60 -- "$bench" array1d --methods tapioca --reps 1 --dir '{shared}' >"$work/log" 2>&1 || status=$?
    [ $status -eq 0 ] || { cat "$work/log" >&2; exit $status; }
}

# measure PART SHAPE IO PLACE CLUSTER-OPTIONS -- BENCH-ARGUMENTS: adds rows to $work/rows and an object to $work/json.
measure() {
    local part=$1 shape=$2 io=$3 place=$4 options=() start=$SECONDS
    shift 4
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    printf '%s %s %s: %s ... ' "$part" "$shape" "$io" "$1" >&2
    if ! "$cluster" "$shape" "${options[@]}" --io "$io" --timeout 900 -- \
        "$bench" "$@" --dir "$place" --reps "$reps" --write-only --json "$work/cells" >"$work/log" 2>&1 </dev/null; then
        echo "failed" >&2
        tail -n 20 "$work/log" >&2
        return 1
    fi
    echo "$((SECONDS - start)) s" >&2
    flatten "$part $shape $io" <"$work/cells" >>"$work/rows"
    [ ! -s "$work/json" ] || echo , >>"$work/json"
    {
        printf '{"part": "%s", "shape": "%s", "io": "%s", "link": "%s", "cells":\n' "$part" "$shape" "$io" "$link"
        cat "$work/cells"
        echo '}'
    } >>"$work/json"
    rm "$work/cells"
}

# The JSON cells as lines: PREFIX workload method median min max link share-that-crosses, cold only; the workload in one word.
flatten() {
    awk -v prefix="$1" -F'": ' '
        /^ *{/ { split("", v) }
        /": / { key = $1; value = $2; gsub(/[ "]/, "", key); gsub(/[",]/, "", value); v[key] = value }
        /^ *}/ && v["phase"] == "cold" {
            what = v["workload"] == "hacc" ? "HACC-" toupper(v["layout"]) : "blocks-of-" v["block_bytes"]
            print prefix, what, v["method"], v["median_mb_s"], v["min_mb_s"], v["max_mb_s"], v["link_mb_s"] + 0, ("crossing_bytes" in v) ? v["crossing_bytes"] / (v["bytes_per_rank"] * v["ranks"]) : "-"
        }'
}

run_links() {
    local shape io
    for shape in 8x1 4x2; do
        for io in ompio romio321; do
            measure links $shape $io '{shared}' --link "$link" -- interleaved --block 64,4K --bytes "${bytes:-16M}" \
                --methods tapioca,collective --link "$link" || return 1
            measure links $shape $io '{shared}' --link "$link" -- hacc --particles 400000 \
                --methods tapioca,collective --link "$link" || return 1
        done
    done
}

run_fs() { # NAME
    local io
    for io in ompio romio321; do
        measure "$1" 4x1 $io '{fs}' --link "$link" --fs "$1" -- interleaved --block 4K --bytes "${bytes:-16M}" --fsync \
            --methods tapioca,collective,limit --limit-call 1M || return 1
    done
}

strategies=(RANK_ORDER TOPOLOGY_AWARE CONTENTION_AWARE)
writes=3 # of one run of the bench with --reps 1 --write-only: cold, steady, and one with a report

# place MPI PROGRAM HALF STRATEGY: one start of the hosts, as trunks are counted from start to end; adds a row and an object.
place() {
    local mpi=$1 program=$2 half=$3 strategy=$4 options=(--mpi "$1") trunk
    [ "$mpi" = openmpi ] || options+=(--shim "$(dirname "$program")/../lib/libtapioca_mpich_shim.so")
    if ! "$cluster" 8x2 --switches 2 --link "$link" --trunk 200mbit "${options[@]}" --timeout 300 -- \
        env "TAPIOCA_PLATFORM={platform}" TAPIOCA_DIRECT=never TAPIOCA_NBAGGR="$aggregators" TAPIOCA_STRATEGY="$strategy" \
        "$program" hacc --layout soa --particles $((${bytes_per_rank:-7600000} / 38)) --sizes normal --seed 1 --heavy "$half" \
        --share 0.75 --switches 2 --methods tapioca --dir '{shared}' --reps 1 --write-only --json "$work/cells" \
        >"$work/log" 2>&1 </dev/null; then
        echo "failed: $strategy" >&2
        tail -n 20 "$work/log" >&2
        return 1
    fi
    trunk=$(sed -n 's/.*trunk sw0->sw1: \([0-9]*\) bytes.*sw1->sw0: \([0-9]*\) bytes.*/\1 + \2/p' "$work/log")
    awk -v prefix="topology $mpi $half $strategy" -v trunk="$((trunk))" -v writes=$writes -F'": ' '
        /": / { key = $1; value = $2; gsub(/[ "]/, "", key); gsub(/[",]/, "", value); v[key] = value }
        /^ *}/ && v["phase"] == "cold" {
            all = v["bytes_per_rank"] * v["ranks"]
            print prefix, all / 1e6 / v["median_mb_s"], trunk / writes, v["must_cross_bytes"], all
        }' "$work/cells" >>"$work/rows"
    [ ! -s "$work/json" ] || echo , >>"$work/json"
    {
        printf '{"part": "topology", "mpi": "%s", "heavy": "%s", "strategy": "%s", "aggregators": %d, "trunk_bytes": %d, "writes": %d, "cells":\n' \
            "$mpi" "$half" "$strategy" "$aggregators" "$((trunk))" $writes
        cat "$work/cells"
        echo '}'
    } >>"$work/json"
    rm "$work/cells"
}

run_topology() {
    local mpi program half i strategy start broken=0
    local bytes_per_rank=$bytes
    case $bytes in *K) bytes_per_rank=$((${bytes%K} << 10)) ;; *M) bytes_per_rank=$((${bytes%M} << 20)) ;; esac
    for mpi in openmpi mpich; do
        program=$bench
        [ $mpi = openmpi ] || program=${bin_mpich:+$bin_mpich/tapioca-bench}
        [ -n "$program" ] || { echo "topology $mpi: not measured without --bin-mpich" >&2; continue; }
        for half in first last; do
            start=$SECONDS
            printf 'topology %s, data on the %s switch ... ' $mpi $half >&2
            for ((i = 0; i < reps; i++)); do
                for strategy in "${strategies[@]}"; do
                    place $mpi "$program" $half "$strategy" || { broken=1; break 2; }
                done
            done
            [ $broken = 1 ] || echo "$((SECONDS - start)) s" >&2
        done
    done
    return $broken
}

# Seconds of a cold write, and the bytes that crossed the trunk in one write, in both directions.
report_topology() {
    awk -v aggregators="$aggregators" '
        function middle(i, values,    list, n, a, b, t) {
            n = split(values[i], list, " ")
            for (a = 1; a <= n; a++) for (b = a + 1; b <= n; b++) if (list[b] + 0 < list[a] + 0) { t = list[a]; list[a] = list[b]; list[b] = t }
            least = list[1]; most = list[n]
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        $1 == "topology" {
            i = $2 " " $3 " " $4
            if (!(i in seconds)) name[++rows] = i
            seconds[i] = seconds[i] " " $5; crossed[i] = crossed[i] " " $6; must[i] = $7; all[i] = $8
        }
        END {
            printf "\ntopology: HACC-IO SoA written cold by 16 ranks on 2 switches, 0.75 of %.0f MB on one, %d aggregators; s, median (least-most)\n", all[name[1]] / 1e6, aggregators
            printf "  %-8s %-6s %-17s %22s %16s %16s %9s %13s  %s\n", "", "on", "", "seconds", "MB over trunk",
                "MB must cross", "to must", "to RANK_ORDER", "bars: bytes, time"
            for (r = 1; r <= rows; r++) {
                i = name[r]; split(i, word, " ")
                bytes = middle(i, crossed)
                s = middle(i, seconds); shown = sprintf("%.2f (%.2f-%.2f)", s, least, most)
                if (word[3] == "RANK_ORDER") base = s
                ratio = must[i] > 0 ? sprintf("%.2fx", bytes / must[i]) : "-"
                bars = ""
                if (word[3] == "TOPOLOGY_AWARE") {
                    one = bytes <= 1.3 * must[i] ? "reached" : "above 1.3"
                    # RANK_ORDER takes the first hosts: with the data there, it is right by chance.
                    two = base >= 1.5 * s ? "reached" : word[2] == "first" ? "no bar" : "below 1.5"
                    bars = one ", " two
                    if (bars ~ /above|below/) missed = 1
                }
                printf "  %-8s %-6s %-17s %22s %16.1f %16.1f %9s %12.2fx  %s\n", word[1], word[2], word[3], shown, bytes / 1e6, must[i] / 1e6, ratio,
                    base / s, bars
            }
            if (rows == 0) { print "  nothing was measured"; missed = 1 }
            exit missed
        }' "$work/rows"
}

# One table from $work/rows for links, one for each file system; the last line tells whether all bars are reached.
report() {
    awk -v part="$1" '
        $1 == part {
            row = $2 "  " $4
            if (!(row in seen)) { seen[row] = ++rows; name[rows] = row; block[rows] = $4 }
            i = seen[row]
            median[i, $3, $5] = $6
            spread[i, $3, $5] = sprintf("%.0f (%.0f-%.0f)", $6, $7, $8)
            if ($9 > 0) link[i] = $9
            if ($10 != "-" && $10 < 0.01) stays[i] = 1
        }
        function cell(i, io, method) { return (i, io, method) in spread ? spread[i, io, method] : "-" }
        function ratio(i, io, to) {
            return (i, io, "tapioca") in median && (i, io, to) in median ? median[i, io, "tapioca"] / median[i, io, to] : -1
        }
        function least(a, b) { return a < 0 || b < 0 ? -1 : a < b ? a : b }
        function show(r) { return r < 0 ? "-" : sprintf("%.2fx", r) }
        function bar(r, at_least) { if (r < 0) return "not measured"; return r >= at_least ? "reached" : "below " at_least }
        END {
            bound = part == "links" ? "links allow" : "1 MiB writes"
            printf "\n%s: written cold, MB/s, median (least-most)\n", part
            printf "  %-21s %18s %18s %18s %18s %18s  %9s %9s %9s  %s\n", "", "TAPIOCA", "OMPIO", "TAPIOCA again", "ROMIO", bound,
                "to " (part == "links" ? "links" : "1 MiB"), "to OMPIO", "to ROMIO", "bars: bound, MPI-IO"
            for (i = 1; i <= rows; i++) {
                to_ompio = ratio(i, "ompio", "collective")
                to_romio = ratio(i, "romio321", "collective")
                if (part == "links") {
                    shown = i in stays ? "hardly any crosses" : i in link ? sprintf("%.0f", link[i]) : "-"
                    to_bound = -1
                    if (i in link && !(i in stays)) to_bound = least(median[i, "ompio", "tapioca"] / link[i], median[i, "romio321", "tapioca"] / link[i])
                    one = i in stays ? "reached" : bar(to_bound, 0.8)
                    two = bar(least(to_ompio, to_romio), block[i] == "blocks-of-64" ? 3 : 0.97)
                } else {
                    shown = cell(i, "romio321", "limit")
                    to_bound = least(ratio(i, "ompio", "limit"), ratio(i, "romio321", "limit"))
                    one = bar(to_bound, 0.9)
                    two = bar(least(to_ompio, to_romio), 1.0)
                }
                if (one != "reached" || two != "reached") missed = 1
                printf "  %-21s %18s %18s %18s %18s %18s  %9s %9s %9s  %s, %s\n", name[i], cell(i, "ompio", "tapioca"),
                    cell(i, "ompio", "collective"), cell(i, "romio321", "tapioca"), cell(i, "romio321", "collective"), shown,
                    show(to_bound), show(to_ompio), show(to_romio), one, two
            }
            if (rows == 0) { print "  nothing was measured"; missed = 1 }
            exit missed
        }' "$work/rows"
}

parse "$@"
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-cluster-suite.XXXXXX")
trap 'rm -rf "$work"' EXIT
: >"$work/rows"
: >"$work/json"
prepare
probe
broken=0
for part in "${parts[@]}"; do
    case $part in
    links) run_links || broken=1 ;;
    topology) run_topology || broken=1 ;;
    predictions) ;;  # which prints as it goes
    *) run_fs "$part" || broken=1 ;;
    esac
done
{ echo '['; cat "$work/json"; echo ']'; } >"$json"
for part in "${parts[@]}"; do
    case $part in
    topology) report_topology || broken=1 ;;
    predictions) python3 "$here/predictions.py" "$cluster" "$bin" "$link" "$reps" || broken=1 ;;
    *) report "$part" || broken=1 ;;
    esac
done
echo
echo "all figures: $json; $SECONDS s"
exit $broken
