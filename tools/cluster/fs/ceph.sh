# shellcheck shell=bash
# Sourced by tapioca-cluster: CephFS on three object servers that keep everything in memory (memstore), without
# authentication; monitor and metadata server on n0, mounted by ceph-fuse. Copies: Ceph's default, three.
# shellcheck disable=SC2034,SC2154
fs_hosts=3
fs_programs="ceph ceph-mon ceph-osd ceph-mds ceph-fuse monmaptool"
fs_packages="ceph-base ceph-mon ceph-osd ceph-mds ceph-fuse ceph-common"

ceph_on() { # HOST PROGRAM...: with this cluster's configuration
    local host=$1
    shift
    on "$host" env CEPH_CONF=/run/ceph/ceph.conf "$@"
}

fs_start() {
    local h id
    id=$(</proc/sys/kernel/random/uuid)
    for ((h = 0; h < hosts; h++)); do
        on n$h sh -c 'mkdir -p /run/ceph/mon /run/ceph/osd /run/ceph/mds /run/ceph/log; cat >/run/ceph/ceph.conf' <<END || return 1
[global]
fsid = $id
mon host = [v2:10.77.0.1:3300,v1:10.77.0.1:6789]
auth cluster required = none
auth service required = none
auth client required = none
auth supported = none
public network = 10.77.0.0/24
run dir = /run/ceph
log file = /run/ceph/log/\$name.log
mon data = /run/ceph/mon
mon cluster log file = /run/ceph/log/cluster.log
osd data = /run/ceph/osd
osd objectstore = memstore
memstore device bytes = 4294967296
osd crush chooseleaf type = 1
osd pool default pg autoscale mode = off
mds data = /run/ceph/mds
END
    done
    ceph_on n0 monmaptool --create --fsid "$id" --addv n0 '[v2:10.77.0.1:3300,v1:10.77.0.1:6789]' /run/ceph/monmap &&
        ceph_on n0 ceph-mon --mkfs -i n0 --monmap /run/ceph/monmap && ceph_on n0 ceph-mon -i n0 || return 1
    for h in 0 1 2; do
        id=$(</proc/sys/kernel/random/uuid)
        [ "$(ceph_on n0 ceph --connect-timeout 30 osd new "$id")" = $h ] || return 1
        ceph_on n$h ceph-osd -i $h --mkfs --osd-uuid "$id" && ceph_on n$h ceph-osd -i $h || return 1
    done
    ceph_on n0 ceph osd pool create data 32 && ceph_on n0 ceph osd pool create meta 8 &&
        ceph_on n0 ceph fs new box meta data && ceph_on n0 ceph-mds -i a || return 1
    until ceph_on n0 ceph mds stat | grep -q 'up:active'; do sleep 0.2; done
}

fs_mount() { # HOST
    until ceph_on "$1" ceph-fuse -n client.admin "$state/fs"; do sleep 0.2; done
}
