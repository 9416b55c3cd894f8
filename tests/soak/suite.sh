#!/usr/bin/env bash
# Runs random jobs for a given time, on Open MPI and MPICH, and prints a summary.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
for option in "$@"; do
    case $option in --help | -h | --build | --openmpi | --mpich) exec "$here/soak.sh" "$@" ;; esac
done
(
    cd "$here/../.."
    . tools/setup.sh
    setup_packages "${setup_core_packages[@]}" mpich libmpich-dev libgtest-dev iproute2 mount
    for preset in openmpi mpich; do
        setup_target=soak setup_build $preset
    done
)
exec "$here/soak.sh" "$@"
