#!/usr/bin/env bash
# Ranks in containers that have other names or other memory than their neighbours: PROGRAM LAUNCHER...
# shellcheck disable=SC2016
set -euo pipefail
program=$1
shift
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_osc=^ucx # MPI itself would look for shared memory
apart=(unshare --mount --uts --propagation private)
[ "$(id -u)" -eq 0 ] || apart+=(--user --map-root-user)
"${apart[@]}" mount -t tmpfs shm /dev/shm 2>/dev/null || { echo "namespaces are not permitted here"; exit 77; }

try() { # SIZES WHAT: what each rank does first, with $r its number
    echo "== $2 -> $1"
    NEIGHBOURS=$1 timeout 60 "${launcher[@]}" -n 4 "${apart[@]}" sh -c \
        'r=$OMPI_COMM_WORLD_RANK; '"$2"'; exec "$0"' "$program"
}

launcher=("$@")
try 4444 'hostname container$r'
try 1111 'mount -t tmpfs shm /dev/shm'
try 1221 '[ $r = 1 ] || [ $r = 2 ] || mount -t tmpfs shm /dev/shm'
try 1111 'mount -t tmpfs -o ro shm /dev/shm'
try 1111 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9'
# Two that bind different directories of one memory.
place=$(mktemp -d /dev/shm/neighbours.XXXXXX)
trap 'rm -rf "$place"' EXIT
mkdir "$place/0" "$place/1"
try 2222 "mount --bind $place/\$((r % 2)) /dev/shm"
