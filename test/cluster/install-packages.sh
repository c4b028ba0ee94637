#!/usr/bin/env bash
# Installs what a node of the tests takes from its distribution, where that is Debian or Ubuntu and the caller is root.
# Elsewhere it says what is missing. Does nothing when all is there.
set -euo pipefail

# Debian keeps these where an ordinary user's PATH does not look.
PATH=$PATH:/usr/sbin:/sbin
# The command that shows a package is there, and the package.
wanted=(
  containerd containerd
  ctr containerd
  runc runc
  /usr/lib/cni/ptp containernetworking-plugins
  buildah buildah
  nft nftables
  ip iproute2
  nsenter util-linux
  openssl openssl
  prometheus prometheus
)

missing=()
for ((i = 0; i < ${#wanted[@]}; i += 2)); do
  command -v "${wanted[i]}" >/dev/null || missing+=("${wanted[i + 1]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "install-packages: missing ${missing[*]}; run $0 as root, or install them yourself" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "install-packages: missing ${missing[*]}; this system has no apt-get: install them by its own means" >&2
  exit 1
fi
# A package must not start a containerd of its own: the node runs one with its own folder and socket.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -qq --no-install-recommends "${missing[@]}" >&2; }
# The list of packages may be older than the mirror's packages, or not be there.
install || { apt-get update -qq >&2 && install; }
