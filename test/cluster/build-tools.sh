#!/usr/bin/env bash
# build-tools.sh [TOOL…]: builds the servers and commands that the tests use, once per version of their sources, and prints
# the folder of each tool on one line. The default TOOL is control-plane.
#   control-plane  etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl
#   nats-server, nats-exporter, helm, coredns, kwok, pause, registry (CNCF distribution)
#   slow-disk (Linux: a folder mounted by FUSE, whose writes can be delayed)
#   gitea (needs a C compiler; its folder also contains its templates and settings)
#   qwen-code (an agent program from npm, with settings.json beside it; needs npm and openssl, not Go)
#   mcp-servers (MCP servers from npm, and on Linux from PyPI for /usr/bin/python3; needs npm and pip, not Go)
# KUBERNETES_VERSION=1.33.13 builds the control plane of the oldest supported Kubernetes instead, without the parts of a node.
# The cache is outside the checkout: TEMPER_TOOLS, or ${XDG_CACHE_HOME:-~/.cache}/temper/tools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TEMPER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/temper/tools}
newest=1.36.3
oldest=1.33.13
kubernetes=${KUBERNETES_VERSION:-$newest}
nats_server=2.15.2
# The version that the chart installs.
nats_exporter=0.12.0
helm=3.22.0
coredns=1.15.0
kwok=0.8.0
gitea=1.26.0
registry=3.1.2
qwen_code=0.24.4
qwen_code_sha512=pmexy/Nj+BKd3Un1ogqGQE8V4GJn5B6N9PQOrU1GH+lMR29kn6Bgf6YdbZa8hNIoTmAKT1LTPK+P8TibZRPPVg==
qwen_code_settings=$here/../fixtures/qwen-code/settings.json
mcp_servers=$here/mcp-servers

case $kubernetes in
  "$newest") sources=hyperkube components='etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl' ;;
  "$oldest") sources=hyperkube-1.33 components='etcd kube-apiserver kube-controller-manager kubectl' ;;
  *)
    echo "build-tools: KUBERNETES_VERSION=$kubernetes cannot be built; use $newest or $oldest" >&2
    exit 1
    ;;
esac

# The key covers the sources, not the compiler, so that Go is only needed for a build.
key_of() {
  case $1 in
    control-plane) echo "control-plane-$kubernetes-$(cat "$here/$sources"/{go.mod,go.sum,main.go} | digest)" ;;
    nats-server) echo "nats-server-$nats_server" ;;
    nats-exporter) echo "nats-exporter-$nats_exporter" ;;
    helm) echo "helm-$helm" ;;
    coredns) echo "coredns-$coredns" ;;
    kwok) echo "kwok-$kwok" ;;
    gitea) echo "gitea-$gitea" ;;
    registry) echo "registry-$registry" ;;
    qwen-code) echo "qwen-code-$qwen_code-$(digest <"$qwen_code_settings")" ;;
    mcp-servers) echo "mcp-servers-$(cat "$mcp_servers"/* | digest)-$(python_version)" ;;
    pause) echo "pause-$(digest <"$here/pause/main.go")" ;;
    slow-disk) echo "slow-disk-$(cat "$here/slow-disk"/{go.mod,go.sum,main.go} | digest)" ;;
    *)
      echo "build-tools: unknown tool $1; known tools: control-plane, nats-server, nats-exporter, helm, coredns, kwok, pause, registry, slow-disk, gitea, qwen-code and mcp-servers" >&2
      return 1
      ;;
  esac
}

# Packages with native code are for one version of Python. The launcher starts programs of the system, so it is that of the system.
python_version() { [ "$(uname -s)" != Linux ] || /usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])'; }

# macOS has shasum but not sha256sum.
digest() { (command -v sha256sum >/dev/null && sha256sum || shasum -a 256) | cut -c1-12; }

major() { cut -d. -f1 <<<"$1"; }
minor() { cut -d. -f2 <<<"$1"; }

# build TOOL FOLDER
build() {
  case $1 in
    control-plane)
      local stamp=k8s.io/component-base/version
      (cd "$here/$sources" && go_ build -mod=readonly -o "$2/hyperkube" \
        -ldflags "-s -w -X $stamp.gitVersion=v$kubernetes -X $stamp.gitMajor=$(major "$kubernetes") -X $stamp.gitMinor=$(minor "$kubernetes")" .)
      local component
      for component in $components; do
        ln -s hyperkube "$2/$component"
      done
      ;;
    nats-server) GOBIN=$2 go_ install -ldflags '-s -w' "github.com/nats-io/nats-server/v2@v$nats_server" ;;
    nats-exporter)
      # Not `go install`, which reads the list of all versions first.
      local sources
      sources=$(go mod download -json "github.com/nats-io/prometheus-nats-exporter@v$nats_exporter" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
      (cd "$sources" && go_ build -mod=readonly -ldflags '-s -w' -o "$2/nats-exporter" .)
      ;;
    helm)
      # Helm's default Kubernetes version when it is not connected to a cluster; without these flags it is 1.20.
      local in=helm.sh/helm/v3 flags=
      for package in pkg/chartutil pkg/lint/rules; do
        flags+=" -X $in/$package.k8sVersionMajor=$(major "$newest") -X $in/$package.k8sVersionMinor=$(minor "$newest")"
      done
      GOBIN=$2 go_ install -ldflags "-s -w -X $in/internal/version.version=v$helm$flags" "$in/cmd/helm@v$helm"
      ;;
    coredns) GOBIN=$2 go_ install -ldflags '-s -w' "github.com/coredns/coredns@v$coredns" ;;
    kwok) GOBIN=$2 go_ install -ldflags "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v$kwok" "sigs.k8s.io/kwok/cmd/kwok@v$kwok" ;;
    gitea)
      # Its module has replace directives, which `go install` refuses. SQLite is C code.
      local module
      module=$(go mod download -json "code.gitea.io/gitea@v$gitea" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
      (cd "$module" && CGO_ENABLED=1 go build -mod=readonly -p 2 -buildvcs=false -trimpath -tags 'sqlite sqlite_unlock_notify' \
        -ldflags '-s -w' -o "$2/gitea" . >&2)
      mkdir "$2/static"
      (cd "$module" && tar -cf - options public templates) | tar -C "$2/static" -xf - --no-same-permissions
      chmod -R u+w "$2/static"
      ;;
    registry) GOBIN=$2 go_ install -ldflags '-s -w' "github.com/distribution/distribution/v3/cmd/registry@v$registry" ;;
    qwen-code)
      # The package has no dependencies that it needs, so that one archive is all of it.
      (cd "$2" && npm pack --silent "@qwen-code/qwen-code@$qwen_code" >&2 && mv ./*.tgz archive.tgz)
      if [ "$(openssl dgst -sha512 -binary "$2/archive.tgz" | openssl base64 -A)" != "$qwen_code_sha512" ]; then
        echo "build-tools: the archive of qwen-code $qwen_code has another digest than expected" >&2
        return 1
      fi
      mkdir "$2/qwen-code"
      tar -xzf "$2/archive.tgz" -C "$2/qwen-code" --strip-components=1
      rm "$2/archive.tgz"
      cp "$qwen_code_settings" "$2"
      ;;
    mcp-servers)
      mkdir "$2/mcp-servers"
      cp "$mcp_servers"/* "$2/mcp-servers"
      # The lock file and the requirements have the digest of each package; no script of a package runs.
      (cd "$2/mcp-servers" && npm ci --silent --ignore-scripts --no-audit --no-fund >&2)
      [ "$(uname -s)" != Linux ] || python3 -m pip --quiet --disable-pip-version-check --python /usr/bin/python3 install \
        --target "$2/mcp-servers/python" --root-user-action ignore \
        --require-hashes --only-binary :all: --no-deps --requirement "$mcp_servers/requirements.txt" >&2
      # With these files, a server would install packages from the network when it is first called.
      (cd "$2/mcp-servers" && xargs rm -f <"$mcp_servers/removed.txt")
      ;;
    pause) go_ build -ldflags '-s -w' -o "$2/pause" "$here/pause/main.go" ;;
    slow-disk) (cd "$here/slow-disk" && go_ build -mod=readonly -ldflags '-s -w' -o "$2/slow-disk" .) ;;
  esac
}

go_() { CGO_ENABLED=0 go "$1" -p 2 -buildvcs=false -trimpath "${@:2}" >&2; }

# provide TOOL: prints the folder of the tool and builds it first if necessary.
provide() {
  local key folder
  key=$(key_of "$1")
  folder=$cache/$key
  if [ ! -d "$folder" ]; then
    if [[ ! $1 =~ ^(qwen-code|mcp-servers)$ ]] && ! command -v go >/dev/null; then
      echo "build-tools: Go 1.26 or later is needed to build $key (https://go.dev/dl)" >&2
      return 1
    fi
    mkdir -p "$cache"
    # With flock only one process builds a tool at a time; without it the first finished build is used.
    (
      if command -v flock >/dev/null; then
        exec 9>"$cache/.lock-$key"
        flock 9
      fi
      if [ ! -d "$folder" ]; then build_into "$1" "$folder"; fi
    )
  fi
  echo "$folder"
}

build_into() {
  local building
  echo "build-tools: building $(basename "$2") into $cache" >&2
  building=$(mktemp -d "$cache/.building-XXXXXX")
  # shellcheck disable=SC2064 # expand the folder now
  trap "rm -rf '$building'" EXIT
  build "$1" "$building"
  chmod 755 "$building"
  [ -d "$2" ] || mv "$building" "$2"
}

[ $# -gt 0 ] || set -- control-plane
for tool in "$@"; do key_of "$tool" >/dev/null; done
for tool in "$@"; do provide "$tool"; done
