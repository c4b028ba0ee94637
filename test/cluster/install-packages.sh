#!/usr/bin/env bash
# Installs the packages that a test node needs, or those named in PACKAGES, from the distribution, on Debian or Ubuntu and as root.
# Otherwise it prints the missing packages and fails. Does nothing when all are installed.
set -euo pipefail

# Debian installs these in folders that an ordinary user's PATH does not contain.
PATH=$PATH:/usr/sbin:/sbin
# Pairs of a command and the package that contains it.
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
# Each of these packages is named as its command.
if [ -n "${PACKAGES:-}" ]; then
  wanted=()
  for package in $PACKAGES; do wanted+=("$package" "$package"); done
fi

missing=()
for ((i = 0; i < ${#wanted[@]}; i += 2)); do
  command -v "${wanted[i]}" >/dev/null || missing+=("${wanted[i + 1]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "install-packages: missing ${missing[*]}; run $0 as root, or install them" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "install-packages: missing ${missing[*]}; this system has no apt-get; install them with its package manager" >&2
  exit 1
fi
# The package must not start a containerd: the node runs one with a separate folder and socket.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -qq --no-install-recommends "${missing[@]}" >&2; }
# The package list may be outdated or absent.
install || { apt-get update -qq >&2 && install; }
