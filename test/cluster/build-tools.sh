#!/usr/bin/env bash
# Builds the control plane that the integration tests run against, once for each version of its sources, and prints the
# folder that holds it. The cache is outside the checkout: TEMPER_TOOLS, or ${XDG_CACHE_HOME:-~/.cache}/temper/tools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=1.36.3
cache=${TEMPER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/temper/tools}
# Go is looked up only when there is something to build, so the key holds the sources and not the compiler.
key=control-plane-$version-$(cat "$here"/hyperkube/{go.mod,go.sum,main.go} "${BASH_SOURCE[0]}" | sha256sum | cut -c1-12)
tools=$cache/$key

if [ -x "$tools/hyperkube" ]; then
  echo "$tools"
  exit
fi

if ! command -v go >/dev/null; then
  echo "build-tools: Go is needed to build the control plane ($here/hyperkube/go.mod names the version)" >&2
  exit 1
fi
echo "build-tools: building Kubernetes $version into $tools (some minutes, about 1.3 GB of modules)" >&2
mkdir -p "$cache"
building=$(mktemp -d "$cache/.building-XXXXXX")
trap 'rm -rf "$building"' EXIT

stamp=k8s.io/component-base/version
(cd "$here/hyperkube" && CGO_ENABLED=0 go build -p 2 -mod=readonly -buildvcs=false -trimpath \
  -ldflags "-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=${version%%.*} -X $stamp.gitMinor=$(cut -d. -f2 <<<"$version")" \
  -o "$building/hyperkube" .) >&2
for component in etcd kube-apiserver kube-controller-manager; do
  ln -s hyperkube "$building/$component"
done
chmod 755 "$building"
# Of two builds at once the first to finish stands; the other finds the folder there and is thrown away.
if ! mv -T "$building" "$tools" 2>/dev/null && [ ! -x "$tools/hyperkube" ]; then
  echo "build-tools: could not move the build to $tools" >&2
  exit 1
fi
echo "$tools"
