# shellcheck shell=bash
# Sourced by tapioca-cluster: MooseFS with the master on n0 and a chunk server on the first four hosts, in memory.
# shellcheck disable=SC2034,SC2154
fs_hosts=2
fs_programs="mfsmaster mfschunkserver mfsmount"
fs_packages="moosefs-master moosefs-chunkserver moosefs-client"

fs_start() {
    local h
    # shellcheck disable=SC2016
    on n0 sh -c 'set -e
        mkdir -p /run/mfs/master
        printf "MFSM NEW" >/run/mfs/master/metadata.mfs
        echo "* / rw,alldirs,maproot=0" >/run/mfs/exports.cfg
        printf "%s\n" "WORKING_USER = root" "WORKING_GROUP = root" "DATA_PATH = /run/mfs/master" "NICE_LEVEL = 0" \
            "EXPORTS_FILENAME = /run/mfs/exports.cfg" >/run/mfs/master.cfg
        mfsmaster -c /run/mfs/master.cfg start' || return 1
    for ((h = 0; h < hosts && h < 4; h++)); do
        # shellcheck disable=SC2016
        on n$h sh -c 'set -e
            mkdir -p /run/mfs/chunk
            mkdir /run/mfs/disk
            mount -t tmpfs -o size=4g disk /run/mfs/disk
            echo /run/mfs/disk >/run/mfs/disks.cfg
            printf "%s\n" "WORKING_USER = root" "WORKING_GROUP = root" "DATA_PATH = /run/mfs/chunk" "NICE_LEVEL = 0" \
                "HDD_CONF_FILENAME = /run/mfs/disks.cfg" "MASTER_HOST = n0" "HDD_LEAVE_SPACE_DEFAULT = 16MiB" \
                >/run/mfs/chunk.cfg
            mfschunkserver -c /run/mfs/chunk.cfg start' || return 1
    done
}

fs_mount() { # HOST: done when all chunk servers have registered and a file can be written
    local servers=$((hosts < 4 ? hosts : 4)) blocks=0 size=0
    until on "$1" mfsmount "$state/fs" -H n0; do sleep 0.2; done
    until [ $((blocks * size >> 30)) -ge $((servers * 3)) ]; do
        sleep 0.2
        read -r blocks size < <(on "$1" stat -f -c '%b %S' "$state/fs")
    done
    until on "$1" sh -c "echo probe >$state/fs/.probe.$1 && rm $state/fs/.probe.$1"; do sleep 0.2; done
}
