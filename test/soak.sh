#!/usr/bin/env bash
# soak.sh TARGET…: runs test targets of the Makefile TIMES times (4) beside LOAD busy processes (2), and prints one line per run.
# Every run happens, also after a failure; the exit code is 1 if one failed. Output of each run is in dist/soak/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
times=${TIMES:-4}
load=${LOAD:-2}
logs=$here/../dist/soak

[ $# -gt 0 ] || { echo 'usage: soak.sh TARGET…, for example: soak.sh test-unit test-system' >&2; exit 2; }
PACKAGES=stress-ng "$here/cluster/install-packages.sh"
mkdir -p "$logs"

if [ "$load" -gt 0 ]; then
  stress-ng --cpu "$load" --quiet &
  trap 'kill '$!' 2>/dev/null || true' EXIT
fi

failed=0
for ((run = 1; run <= times; run++)); do
  for target in "$@"; do
    log=$logs/$target.$run.log
    began=$SECONDS
    if CI=true MUTANTS=${MUTANTS:-2000} make --no-print-directory -C "$here/.." "$target" >"$log" 2>&1; then result=passed; else result=FAILED failed=1; fi
    echo "$target run $run of $times: $result in $((SECONDS - began)) s beside $load busy processes"
    # The reporter repeats the failing tests at the end of its output.
    [ $result = passed ] || { sed -n '/^✖ failing tests:/,$p' "$log" | grep '^✖ ' | tail -n +2 | sed 's/^/  /'; echo "  see $log"; }
  done
done
exit $failed
