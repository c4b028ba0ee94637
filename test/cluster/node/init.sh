#!/usr/bin/env bash
# The first process of a node, in namespaces of its own; with it everything in them ends. One argument: the folder of the node.
set -euo pipefail
folder=$1

# What containerd, the kubelet and the network plugins keep in fixed places is the node's alone, and gone when it ends.
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/containerd /var/lib/cni /var/lib/kubelet
mount -t tmpfs tmpfs /var/lib/cni
mount -t tmpfs tmpfs /var/log
mount --bind "$folder/kubelet" /var/lib/kubelet
# The pods' mounts of volumes are seen through it.
mount --make-rshared /var/lib/kubelet

# The kubelet would set these for the whole machine; it finds them set.
tunable() {
  [ -e "/proc/sys/$1" ] || return 0
  echo "$2" >"$folder/sysctl-${1##*/}"
  mount --bind "$folder/sysctl-${1##*/}" "/proc/sys/$1"
}
tunable vm/overcommit_memory 1
tunable vm/panic_on_oom 0
tunable kernel/panic 10
tunable kernel/panic_on_oops 1
tunable kernel/keys/root_maxkeys 1000000
tunable kernel/keys/root_maxbytes 25000000

touch "$folder/init.ready"
# Bash reaps whatever is left to it.
while :; do
  sleep 3600 &
  wait $! || true
done
