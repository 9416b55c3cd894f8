#!/usr/bin/env bash
# Tries every fault at every call of every rank, on Open MPI and MPICH, and writes a table of the results, also into docs/results/faults.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/setup.sh
setup_name="tests/run faults"

usage="usage: tests/run faults [--every N] [--memory N] [--no-page] [MPI...]    MPIs: openmpi mpich (default: both)
  --every N    one case in N (default 1: all)
  --memory N   of failing allocations one case in N (default 10): each may cost a job
  --jobs N     so many sweeps at a time (default 1), of four ranks each
  --bin DIR    where programs and library are, for a machine that cannot build them
  --no-page    leave docs/results/faults.md as it is
  --more       keep what earlier runs have found in build/faults, and add to it
  --table      run nothing: the table of what is there"
every=1 memory=10 jobs=1 bin_given= more= table= page=docs/results/faults.md mpis=()
while [ $# -gt 0 ]; do
    case $1 in
    --every | --memory | --jobs) [ $# -gt 1 ] || setup_fail "$1 needs a number"; printf -v "${1#--}" %s "$2"; shift ;;
    --bin) [ $# -gt 1 ] || setup_fail "$1 needs a directory"; bin_given=$(cd "$2" && pwd); shift ;;
    --more) more=yes ;;
    --table) more=yes table=yes ;;
    --no-page) page= ;;
    openmpi | mpich) mpis+=("$1") ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) setup_fail "unknown argument '$1'; $usage" ;;
    esac
    shift
done
[ ${#mpis[@]} -gt 0 ] || [ -n "$table" ] || mpis=(openmpi mpich)
[ -n "$bin_given$table" ] || setup_packages "${setup_core_packages[@]}" mpich libmpich-dev libgtest-dev gfortran

root=$PWD results=$PWD/build/faults
mkdir -p "$results"
[ -n "$more" ] || rm -f "$results"/*
touch "$results/ended"
scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/sweep.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# launch MPI PRELOAD ENVIRONMENT... -- PROGRAM ARGUMENT...: four ranks
launch() {
    local mpi=$1 preload=$2 settings=()
    shift 2
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    if [ "$mpi" = openmpi ]; then
        env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_osc=^ucx \
            OMPI_MCA_btl_vader_single_copy_mechanism=none "${settings[@]}" mpiexec.openmpi --oversubscribe --bind-to none \
            ${preload:+-x "LD_PRELOAD=$preload"} -n 4 "$@"
    else
        env "${settings[@]}" mpiexec.hydra -genv LD_PRELOAD \
            "$root/build/mpich/lib/libtapioca_mpich_shim.so${preload:+:$preload}" -n 4 "$@"
    fi
}

# sweep MPI NAME PRELOAD ENVIRONMENT... -- PROGRAM ARGUMENT...: until all cases are through; a case may end its job
sweep() {
    local mpi=$1 name=$2
    shift 2
    local journal=$results/$mpi-$name.journal log=$results/$mpi-$name.log start=$SECONDS last
    mkdir -p "$scratch/$mpi-$name/sweep/stage"
    cd "$scratch/$mpi-$name"
    touch "$journal"
    for attempt in $(seq 5000); do
        timeout 3600 bash -c "$(declare -f launch); root=$root; launch $mpi \"\$@\"" launch "$@" --journal "$journal" >"$log.now" 2>&1 || true
        cat "$log.now" >>"$log"
        grep -E '^(WRONG|HANG)' "$log.now" || true
        ! grep -q 'faults tried' "$log.now" || break
        last=$(grep '^begin' "$journal" | tail -n 1 | cut -f 2-)
        if grep -q 'aborting the job' "$log.now"; then
            printf '%s\t%s\n' "${journal##*/}" "$last" >>"$results/ended"
        else
            echo "the job broke off: $last"
        fi
    done
    rm -f "$log.now"
    cd "$root"
    echo "$mpi $name: $(grep -c '^begin' "$journal") cases, $((SECONDS - start)) s"
}

# run NAME ...: as sweep, beside others
run() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    sweep "$@" &
}

for mpi in "${mpis[@]}"; do
    if [ -z "$bin_given" ]; then
        setup_target="fault_sweep fault_sweep_mpiio tapioca_mpiio tapioca-recover" setup_build "$mpi"
        [ "$mpi" = openmpi ] || setup_target=tapioca_mpich_shim setup_build "$mpi"
    fi
    bin=${bin_given:-$root/build/$mpi/bin} library=${bin_given:-$root/build/$mpi/lib}/libtapioca_mpiio.so
    scenarios=$(launch "$mpi" "" -- "$bin/fault_sweep" --list)
    for what in io memory; do
        pick=(--faults $what --every "$([ $what = io ] && echo "$every" || echo "$memory")" --limit 60)
        for scenario in $scenarios; do
            run "$mpi" "$scenario-$what" "" -- "$bin/fault_sweep" --scenario "$scenario" "${pick[@]}"
        done
        gathered=(TAPIOCA_LEAVE=0 TAPIOCA_BUFFERSIZE=4096 TAPIOCA_NBAGGR=2 TAPIOCA_DIRECT=never RECOVER_TOOL="$bin/tapioca-recover")
        stage=TAPIOCA_STAGE=ssd:$scratch/$mpi-mpiio-staged-$what/sweep/stage
        for io in $([ "$mpi" = openmpi ] && echo ompio romio321 || echo romio); do
            run "$mpi" "mpiio-$io-$what" "$library" OMPI_MCA_io=$io "${gathered[@]}" -- "$bin/fault_sweep_mpiio" "${pick[@]}"
        done
        run "$mpi" "mpiio-nodes-$what" "$library" TAPIOCA_RANKS_PER_NODE=2 "${gathered[@]}" -- "$bin/fault_sweep_mpiio" "${pick[@]}"
        run "$mpi" "mpiio-subfile-$what" "$library" TAPIOCA_SUBFILE=files:2 "${gathered[@]}" -- "$bin/fault_sweep_mpiio" "${pick[@]}"
        run "$mpi" "mpiio-target-$what" "$library" TAPIOCA_TARGET=ssd:/proc/self/cwd TAPIOCA_TARGET_THROUGH=0 TAPIOCA_TARGET_DRAIN=close \
            TAPIOCA_RANKS_PER_NODE=2 "${gathered[@]}" -- "$bin/fault_sweep_mpiio" "${pick[@]}"
        run "$mpi" "mpiio-staged-$what" "$library" "$stage" "${gathered[@]}" -- "$bin/fault_sweep_mpiio" "${pick[@]}"
    done
    # A target that stalls for ten seconds.
    for scenario in write-dense staged-process; do
        run "$mpi" "$scenario-stall" "" -- "$bin/fault_sweep" --scenario $scenario --fault "write stall" --stall 10 --every 5 --limit 120
    done
done
wait

of_each() { echo "$1 $(cat "$results/$1"-*.journal 2>/dev/null | grep -c '^begin')"; }

status=0
awk -v ended="$results/ended" -f tests/faults/table.awk "$results/ended" "$results"/*.journal >"$results/table" || status=1
cat "$results/table"
if [ -n "$page" ]; then
    { sed '/^<!-- sweep -->$/q' "$page"
      echo "Written by \`tests/run faults\`, $(date -u +%Y-%m-%d), four ranks; cases begun: $(of_each openmpi), $(of_each mpich)."
      echo
      cat "$results/table"
      sed -n '/^<!-- \/sweep -->$/,$p' "$page"; } >"$page.new"
    mv "$page.new" "$page"
    echo "written into $page"
fi
exit $status
