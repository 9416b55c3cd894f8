#!/usr/bin/env bash
# run.sh FORM WAY DIR [SSD]: runs the simulation and the analysis of the workflow.
#   FORM  after: the analysis runs when the simulation has ended, in the same job
#         along: both run at the same time, and the analysis follows step by step
#   WAY   file: the file system; buffers: aggregation on SSD; target: SSD target
#   DIR   a new directory for the snapshots, which all nodes see
#   SSD   a directory on the SSD of every node; for `buffers` and `target`
# Environment: MPIEXEC (mpiexec), BIN: where the programs are (.), WRITERS (4) and READERS (3): numbers of ranks,
# ARGUMENTS: of the simulation, such as "--steps 10 --compute 500".
set -euo pipefail

usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "run.sh: $*" >&2; exit 2; }

[ "${1-}" != --help ] || { usage; exit 0; }
[ $# -ge 3 ] && [ $# -le 4 ] || { usage >&2; exit 2; }
form=$1 way=$2 dir=$3 ssd=${4-}
bin=${BIN:-.} mpiexec=${MPIEXEC:-mpiexec}

# The programs do not know of the three ways: these are settings, the same for both of them.
[ "$way" = file ] || [ -n "$ssd" ] || fail "$way: give a directory on the SSD of every node as the last argument"
case $way in
    file) ;;
    buffers) export TAPIOCA_AGGRTIER=ssd:$ssd TAPIOCA_DIRECT=never ;; # never past the buffers
    target) export TAPIOCA_TARGET=ssd:$ssd ;;
    *) fail "$way: expected file, buffers or target" ;;
esac

simulation() { $mpiexec -n "${WRITERS:-4}" "$bin/workflow_simulation" ${ARGUMENTS-} "$dir"; }
analysis() { $mpiexec -n "${READERS:-3}" "$bin/workflow_analysis" "$@" "$dir"; }

case $form in
    after)
        simulation
        analysis
        ;;
    along)
        simulation &
        analysis --follow 60 || result=$?
        wait $! || result=$?
        exit "${result-0}"
        ;;
    *) fail "$form: expected after or along" ;;
esac
