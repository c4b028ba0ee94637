#!/usr/bin/env bash
# tier.sh integration|e2e COMMAND…: builds the tools that a tier of tests needs, then runs the command, whose output is the only one on
# standard output. If the tier cannot run here, it prints the reason and the remedy and exits with 0; in continuous integration (CI is
# set) it exits with 1.
set -euo pipefail
exec 3>&1 >&2

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tier=$1
shift

cannot() {
  echo "test-$tier is skipped: $1" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 0
}

has_tools() {
  local all=(control-plane nats-server helm)
  [ "$tier" != integration ] || all+=(gitea registry nats-exporter qwen-code mcp-servers)
  [ "$tier" != e2e ] || all+=(coredns pause gitea mcp-servers)
  "$here/cluster/build-tools.sh" "${all[@]}" >/dev/null
}

if [ "$tier" = e2e ] && [ -z "${TEMPER_E2E_KUBECONFIG:-}" ]; then
  [ "$(uname -s)" = Linux ] || cannot 'a node needs Linux; run it on Linux, or set TEMPER_E2E_KUBECONFIG to the kubeconfig of a cluster'
  [ "$(id -u)" = 0 ] || cannot 'a node needs root; run "sudo -E make test-e2e", or set TEMPER_E2E_KUBECONFIG to the kubeconfig of a cluster'
  "$here/cluster/install-packages.sh" || cannot 'packages that the node needs are missing (see above)'
fi
command -v openssl >/dev/null || cannot 'openssl is not installed; install it'
[ "$tier" != integration ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || PACKAGES=postgresql "$here/cluster/install-packages.sh" ||
  cannot 'PostgreSQL is not installed; install the package postgresql'
[ "$tier" != integration ] || command -v chromium >/dev/null || PACKAGES=chromium "$here/cluster/install-packages.sh" ||
  cannot 'Chromium is not installed; install the package chromium'
[ "$(uname -s)" != Linux ] || { [ -x /usr/bin/python3 ] && python3 -m pip --version >/dev/null 2>&1; } ||
  PACKAGES=python3-pip "$here/cluster/install-packages.sh" || cannot 'pip is not installed; install the package python3-pip'
has_tools || cannot 'its tools could not be built (see above)'
exec "$@" >&3 3>&-
