# Sourced by tapioca-cluster: the network between its hosts, and its description as a platform file.
# shellcheck shell=bash disable=SC2154

rate() { # 200mbit as platform files write it; 10 Gbit/s, about what a core can do, where nothing is shaped
    case $1 in
    none) echo 10Gbit/s ;;
    *) echo "${1%?bit}$(tr kmg KMG <<<"${1: -4:1}")bit/s" ;;
    esac
}

level() { # NAME RATE
    printf '\n[[topology.level]]\nname = "%s"\nlatency = "50us"\nbandwidth = "%s"\n' "$1" "$(rate "$2")"
}

platform() { # these hosts as a platform file; latencies and the figures of the tiers are rough
    local s h list names
    printf 'name = "tapioca-cluster %sx%s"\nhosts = "n[0-%s]"\n\n[topology]\n' "$hosts" "$ranks" $((hosts - 1))
    if [ "$switches" -eq 1 ]; then
        echo 'kind = "flat"'
    else
        for ((s = 0; s < switches; s++)); do
            names=''
            for ((h = 0; h < hosts; h++)); do
                [ $((h * switches / hosts)) -ne $s ] || names+="${names:+, }\"n$h\""
            done
            list+="${list:+, }[$names]"
        done
        printf 'kind = "fat_tree"\nswitches = [%s]\n' "$list"
    fi
    level link "$link"
    [ "$switches" -eq 1 ] || { level trunk "$trunk"; echo 'links = 1'; }
    cat <<END

[[tier]]
name = "dram"
latency = "100ns"
bandwidth = "5GB/s"

[[tier]]
name = "ssd"
place = "$state/ssd"
latency = "100us"
bandwidth = "1GB/s"
capacity = "${ssd^^}iB"
END
}

shape() { # NETWORK DEVICE RATE; queues take whatever is under way: networks of clusters lose no packets
    [ "$3" = none ] || need tc -n "$1" qdisc replace dev "$2" root tbf rate "$3" burst 128kb limit 32mb
}

make_network() { # switches are bridges in a namespace of their own; trunk s is u$s at the first switch and d$s at switch s
    local s h end
    need ip netns add fabric
    for ((s = 0; s < switches; s++)); do
        need ip -n fabric link add sw$s type bridge
        need ip -n fabric link set sw$s up
        [ $s -gt 0 ] || continue
        need ip -n fabric link add u$s type veth peer name d$s
        for end in "u$s sw0" "d$s sw$s"; do
            need ip -n fabric link set "${end% *}" master "${end#* }" up
            shape fabric "${end% *}" "$trunk"
        done
    done
    plug_in head 254 0 none
    for ((h = 0; h < hosts; h++)); do plug_in n$h $((h + 1)) $((h * switches / hosts)) "$link"; done
}

plug_in() { # HOST ADDRESS SWITCH RATE
    need ip netns add "$1"
    need ip link add eth0 netns "$1" type veth peer name "to-$1" netns fabric
    need ip -n fabric link set "to-$1" master "sw$3" up
    need ip -n "$1" link set lo up
    need ip -n "$1" addr add "10.77.0.$2/24" dev eth0
    need ip -n "$1" link set eth0 up
    shape "$1" eth0 "$4"
    shape fabric "to-$1" "$4"
}
