#!/usr/bin/env bash
# The first process (PID 1) in the namespaces of a node. When it ends, everything in them ends. One argument: the folder of the node.
set -euo pipefail
folder=$1

# containerd, the kubelet and the CNI plugins use fixed paths. Mounts make these paths private to the node; they disappear when it ends.
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/containerd /var/lib/cni /var/lib/kubelet
mount -t tmpfs tmpfs /var/lib/cni
mount -t tmpfs tmpfs /var/log
mount --bind "$folder/kubelet" /var/lib/kubelet
# Shared propagation makes the pods' volume mounts visible.
mount --make-rshared /var/lib/kubelet

# The kubelet sets these for the whole machine. Bind mounts show it the expected values, so the machine's settings stay unchanged.
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
# Bash reaps orphaned processes.
while :; do
  sleep 3600 &
  wait $! || true
done
