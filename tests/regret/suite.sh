#!/usr/bin/env bash
# Measures whether the right way was chosen: every way of a covering sample of workloads, on one node, and the regret of each cell.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

usage="usage: tests/run regret [--ranks N,...] [--dirs DIR,...] [--reps N] [--bin DIR] [--markdown FILE]
  IOR's patterns, blocks dealt rank by rank and HACC-IO, in several sizes, written and read, declared and through the
  drop-in library under OMPIO and ROMIO: \`tapioca bench --ways\` for each, and one table. Defaults: 4 ranks and one for
  each core, /dev/shm and /tmp, 9 repetitions, and build/release, which it builds. A quiet machine is needed."
ranks=4,$(nproc) dirs=/dev/shm,/tmp reps=9 bin="" markdown=""
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) echo "$usage"; exit 0 ;;
    --ranks | --dirs | --reps | --bin | --markdown)
        [ $# -gt 1 ] || { echo "tests/run regret: $1 needs a value" >&2; exit 2; }
        printf -v "${1#--}" %s "$2"
        shift 2
        ;;
    *) echo "tests/run regret: unknown argument '$1'"$'\n'"$usage" >&2; exit 2 ;;
    esac
done
if [ -z "$bin" ]; then
    (
        cd "$here/../.."
        . tools/setup.sh
        setup_packages "${setup_core_packages[@]}" python3
        setup_build release
    )
    bin=$here/../../build/release/bin
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-regret.XXXXXX")
trap 'rm -rf "$work"' EXIT

workloads=(
    "strided --block 4K --bytes 1M"
    "strided --block 64K --bytes 4M"
    "strided --block 256K --bytes 16M"
    "strided --block 1M --bytes 32M"
    "segmented --block 4K --bytes 1M"
    "segmented --block 16K --bytes 2M"
    "segmented --block 64K --bytes 4M"
    "segmented --block 1M --bytes 16M"
    "segmented --block 8M --bytes 64M"
    "interleaved --block 64 --bytes 256K"
    "interleaved --block 1K --bytes 1M"
    "interleaved --block 16K --bytes 1M"
    "interleaved --block 1M --bytes 4M"
    "interleaved --block 1K --bytes 1M --declare list"
    "hacc --particles 5000 --layout aos"
    "hacc --particles 50000 --layout aos"
    "hacc --particles 25000 --layout soa"
)
table() { python3 "$here/table.py" "$work" "$runs" ${markdown:+"$markdown"}; }
runs=0 ios=(ompio romio)
trap 'runs=$((runs - 1)); table; exit 1' INT TERM  # with what there is
total=$((${#workloads[@]} * $(tr ',' '\n' <<<"$ranks" | sort -u | wc -l) * $(tr ',' '\n' <<<"$dirs" | wc -l)))
for n in $(tr ',' '\n' <<<"$ranks" | sort -un); do
    for dir in ${dirs//,/ }; do
        for i in "${!workloads[@]}"; do
            io=${ios[$(((i + runs / ${#workloads[@]}) % 2))]}
            runs=$((runs + 1))
            printf '[%d/%d] %d ranks, %s, %s: %s\n' $runs "$total" "$n" "$dir" $io "${workloads[$i]}" >&2
            # shellcheck disable=SC2086
            "$bin/tapioca" bench -n "$n" --io $io ${workloads[$i]} --ways --dropin --reps "$reps" --dir "$dir" \
                --json "$work/$runs.json" >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
            echo "$dir $io" >"$work/$runs.where"
        done
    done
done
table
