#!/usr/bin/env bash
# tier.sh integration|e2e COMMAND…: builds the tools that a tier of tests needs, then runs the command. Where the tier cannot run it says
# why and what to do, and passes; in continuous integration (CI is set) it fails.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tier=$1
shift

cannot() {
  echo "test-$tier is left out: $1" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 0
}

has_tools() {
  local all=(control-plane nats-server helm)
  [ "$tier" != e2e ] || all+=(coredns pause)
  "$here/cluster/build-tools.sh" "${all[@]}" >/dev/null
}

if [ "$tier" = e2e ] && [ -z "${TEMPER_E2E_KUBECONFIG:-}" ]; then
  [ "$(uname -s)" = Linux ] || cannot 'a node needs Linux; run it in a Linux machine, or give the kubeconfig of a cluster in TEMPER_E2E_KUBECONFIG'
  [ "$(id -u)" = 0 ] || cannot 'a node needs root; run "sudo -E make test-e2e", or give the kubeconfig of a cluster in TEMPER_E2E_KUBECONFIG'
  "$here/cluster/install-packages.sh" || cannot 'packages of the node are missing (see above)'
fi
command -v openssl >/dev/null || cannot 'openssl is missing; install it'
has_tools || cannot 'its tools could not be built (see above)'
exec "$@"
