#!/usr/bin/env bash
# workflow_test.sh BIN SOURCE LAUNCHER...
# The workflow of examples/workflow: 4 ranks simulate, 3 analyse, one after the other and at the same time, by all ways;
# and what the two programs say about bad arguments, missing steps, older runs and a wrong byte.
set -euo pipefail
bin=$1 source=$2 run=$2/examples/workflow/run.sh
shift 2
launcher=("$@")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-workflow-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "workflow_test: $*" >&2; exit 1; }

export BIN=$bin MPIEXEC="$*" ARGUMENTS="--particles 1003 --steps 3"
export TAPIOCA_RANKS_PER_NODE=2
mkdir "$work/ssd"

workflow() { # NAME FORM WAY [SSD]: its output must be what the first one's was
    local name=$1 form=$2 way=$3
    shift 3
    "$run" "$form" "$way" "$work/$name" "$@" >"$work/$name.out" 2>&1 ||
        { cat "$work/$name.out"; fail "$name failed"; }
    [ "$(grep -c "^step [0-2]: 4012 particles, energy .*, checksum right$" "$work/$name.out")" = 3 ] ||
        { cat "$work/$name.out"; fail "$name: not three steps with the right checksum"; }
    [ -e "$work/expected" ] || cp "$work/$name.out" "$work/expected"
    cmp "$work/expected" "$work/$name.out" || fail "$name: the analysis found something else"
}

workflow after-file after file
workflow along-file along file
for step in 0000 0001 0002; do
    cmp "$work/after-file/step.$step" "$work/along-file/step.$step" || fail "step.$step depends on the form"
done
cmp -s "$work/after-file/step.0000" "$work/after-file/step.0001" && fail "two steps are the same"
workflow after-buffers after buffers "$work/ssd"
workflow along-buffers along buffers "$work/ssd"
cmp "$work/after-file/step.0002" "$work/along-buffers/step.0002" || fail "step.0002 depends on the way"
[ -z "$(ls -A "$work/ssd")" ] || fail "buffers were left behind: $(ls -A "$work/ssd")"
for form in after along; do
    TAPIOCA_SUBFILE=node workflow "$form-set" "$form" file
    [ -e "$work/$form-set/step.0002.subfiles/subfile.1" ] || fail "$form-set: no subfiles"
done

if grep -q '"target"' "$source/src/settings/rows.inc"; then
    for form in after along; do
        workflow "$form-target" "$form" target "$work/ssd"
        [ "$(stat -c %s "$work/$form-target/step.0001")" -lt 10000 ] || fail "$form-target: step.0001 is no stub"
        [ -n "$(ls -A "$work/ssd")" ] || fail "$form-target: nothing is on the SSD"
    done
fi

# The analysis follows step by step: it reads what is complete, and does not touch what is not.
step_of() { cp "$work/along-file/step.000$1" "$work/slow/"; }
wait_for() { # STEP
    for ((i = 0; i < 600; i++)); do
        ! grep -q "^step $1: " "$work/slow.out" || return 0
        sleep 0.1
    done
    cat "$work/slow.out"
    fail "the analysis did not follow to step $1"
}
mkdir "$work/slow"
"$@" -n 3 "$bin/workflow_analysis" --follow 100 "$work/slow" >"$work/slow.out" 2>&1 &
analysis=$!
trap 'kill $analysis 2>/dev/null || true; rm -rf "$work"' EXIT
step_of 0
touch "$work/slow/step.0000.done"
wait_for 0
truncate -s 100000 "$work/slow/step.0001" # is being written
sleep 0.5
[ "$(grep -c . "$work/slow.out")" = 1 ] || { cat "$work/slow.out"; fail "the analysis did not wait for step 1"; }
step_of 1
touch "$work/slow/step.0001.done"
wait_for 1
step_of 2
touch "$work/slow/step.0002.done"
wait $analysis || { cat "$work/slow.out"; fail "following failed"; }
cmp "$work/expected" "$work/slow.out" || fail "following: the analysis found something else"

refused() { # STATUS WORDS-IN-THE-ANSWER PROGRAM ARGUMENTS...
    local status=$1 words=$2 program=$3 result=0
    shift 3
    "${launcher[@]}" -n 2 "$bin/workflow_$program" "$@" >"$work/out" 2>&1 || result=$?
    [ "$result" = "$status" ] || { cat "$work/out"; fail "$program $*: exit status $result, not $status"; }
    [ "$(grep -c "^$program: .*$words" "$work/out")" = 1 ] || { cat "$work/out"; fail "$program $*: not one line with '$words'"; }
}
refused 2 "directory for the snapshots is missing" simulation
refused 2 "frob: not an argument of simulation" simulation --particles 3 "$work/new" frob
refused 2 "steps: expected a number from 1 to" simulation --steps 0 "$work/new"
refused 2 "particles: expected a number from 0 to" simulation "$work/new" --particles
refused 2 "steps: expected a number" simulation --steps 2000000000 "$work/new"
[ ! -e "$work/new" ] || fail "a directory was made in spite of bad arguments"
refused 1 "has snapshots of another run" simulation "$work/after-file"
refused 1 "below: Not a directory" simulation "$work/out/below"
refused 2 "directory of the snapshots is missing" analysis --follow 3
refused 2 "follow: expected a number of seconds" analysis --follow soon "$work/new"
refused 1 "step.0000 is not complete: run the simulation first" analysis "$work/new"
refused 1 "step.0000 was not complete within 1 s: does the simulation still run" analysis --follow 1 "$work/new"
rm "$work/after-set/step.0001.done"
refused 1 "step.0001 is not complete" analysis "$work/after-set"
for program in simulation analysis; do
    "$bin/workflow_$program" --help | grep -q "^usage: workflow_$program " || fail "$program has no --help"
done
! "$run" after file >"$work/out" 2>&1 || fail "run.sh accepts two arguments"
! "$run" before file "$work/new" >"$work/out" 2>&1 || fail "run.sh accepts another form"
! "$run" after target "$work/new" >"$work/out" 2>&1 || fail "run.sh accepts an SSD target without a directory"
grep -q "give a directory on the SSD" "$work/out" || fail "run.sh does not ask for the SSD's directory"

# A wrong byte in one particle, in the header, and a file that ends too early.
damaged() { # WORDS FILE OFFSET
    cp "$work/after-file/$2" "$work/whole"
    printf '\252' | dd of="$work/after-file/$2" bs=1 seek="$3" conv=notrunc status=none
    refused 1 "$1" analysis "$work/after-file"
    cp "$work/whole" "$work/after-file/$2"
}
damaged "step.0001: the checksum of the particles is wrong" step.0001 90001
damaged "step.0002: the checksum of the particles is wrong" step.0002 32
damaged "step.0000: not the snapshot of step 0" step.0000 3
truncate -s -1 "$work/after-file/step.0002"
refused 1 "step.0002: the file ends before its last particle" analysis "$work/after-file"
echo "workflow_test: all as expected"
