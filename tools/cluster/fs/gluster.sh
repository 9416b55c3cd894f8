# shellcheck shell=bash
# Sourced by tapioca-cluster: one Gluster volume, disperse 2+1 over the first three hosts, bricks in memory.
# Without sharding: with it, files of concurrent writers grew wrong.
# shellcheck disable=SC2034,SC2154
fs_hosts=3
fs_programs="glusterd gluster mount.glusterfs"
fs_packages="glusterfs-server glusterfs-client"

fs_start() {
    local h
    for ((h = 0; h < hosts; h++)); do
        # shellcheck disable=SC2016
        on n$h sh -c 'mkdir -p /run/gluster /run/brick
            for place in /var/lib/glusterd /var/log/glusterfs; do mkdir -p $place && mount -t tmpfs glusterd $place; done
            [ "$1" -lt 3 ] || exit 0
            for try in 1 2 3 4 5 6 7 8; do # now and then glusterd ends while it starts
                glusterd
                sleep 0.3
                ! gluster --mode=script peer status || exit 0
            done
            exit 1' sh $h || return 1
    done
    for h in 1 2; do
        until on n0 gluster --mode=script peer probe n$h; do sleep 0.2; done
    done
    for h in 0 1 2; do # each must see both others
        until [ "$(on n$h gluster --mode=script peer status | grep -c 'Peer in Cluster (Connected)')" = 2 ]; do sleep 0.2; done
    done
    on n0 gluster --mode=script volume create box disperse 3 redundancy 1 n{0,1,2}:/run/brick/box force &&
        on n0 gluster --mode=script volume start box
}

fs_mount() { # HOST
    until on "$1" mount -t glusterfs n0:/box "$state/fs"; do sleep 0.2; done
}
