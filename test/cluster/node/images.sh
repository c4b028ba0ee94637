#!/usr/bin/env bash
# Builds images without a registry, with buildah in a separate store. Needs root and buildah.
#   images.sh base                        builds the base image (the project's Node and its shared libraries) and prints its name
#   images.sh build FILE NAME ARCHIVE     builds a Containerfile on the base image (build argument BASE, context: the repository) into an archive
#   images.sh program PROGRAM NAME ARCHIVE  builds an image with one program as entry point and its shared libraries
#   images.sh release TAG FOLDER          stages and builds the two images of the project as FOLDER/temper.tar and FOLDER/temper-sandbox.tar
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${TEMPER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/temper/tools}
store=$cache/buildah
mkdir -p "$store"
# Serializes concurrent runs, which would otherwise block each other halfway.
exec 9>"$store/.lock"
flock 9

buildah_() { buildah --root "$store/root" --runroot "$store/run" --storage-driver overlay "$@"; }
has() { buildah_ inspect --type image "$1" >/dev/null 2>&1; }

# libraries PROGRAM MOUNT: copies the shared libraries of PROGRAM into MOUNT; none for a static program
libraries() {
  local library
  for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ )]*'); do
    cp -L --parents "$library" "$2"
  done
}

base() {
  local node name container mount
  node=$("$root/bin/node" -p 'process.execPath')
  name=localhost/temper-base:$(sha256sum <"$node" | cut -c1-12)
  if ! has "$name"; then
    container=$(buildah_ from scratch)
    mount=$(buildah_ mount "$container")
    mkdir -p "$mount"/{usr/local/bin,tmp,etc,lib,usr/lib}
    chmod 1777 "$mount/tmp"
    cp "$node" "$mount/usr/local/bin/node"
    libraries "$node" "$mount"
    echo 'nobody:x:65534:65534:nobody:/:/bin/false' >"$mount/etc/passwd"
    echo 'hosts: files dns' >"$mount/etc/nsswitch.conf"
    buildah_ umount "$container" >/dev/null
    buildah_ config --env PATH=/usr/local/bin:/usr/bin:/bin --user 65534:65534 --entrypoint '["/usr/local/bin/node"]' "$container"
    buildah_ commit -q --rm "$container" "$name" >/dev/null
  fi
  echo "$name"
}

# As the base of a release, which is one for C++ programs: the staged files bring the libraries that only Node needs.
release_base() {
  local full name container mount
  full=$(base)
  name=${full/temper-base/temper-release-base}
  if ! has "$name"; then
    container=$(buildah_ from --pull-never "$full")
    mount=$(buildah_ mount "$container")
    find "$mount" -name 'libatomic.so*' -delete
    buildah_ umount "$container" >/dev/null
    buildah_ commit -q --rm "$container" "$name" >/dev/null
  fi
  echo "$name"
}

# export IMAGE NAME ARCHIVE
export_() {
  rm -f "$3"
  buildah_ push -q "$1" "docker-archive:$3:$2"
}

# bud FILE NAME BASE
bud() {
  buildah_ bud -q --isolation chroot --pull-never --layers --build-arg "BASE=$3" -t "$2" -f "$1" "$root" >/dev/null
}

# Of everything that goes into the two images.
release_digest() {
  cd "$root"
  {
    find src sandbox-image Containerfile package.json package-lock.json Makefile -type f -print0 | sort -z | xargs -0 sha256sum
    sha256sum <"$1"
    cc --version
  } | sha256sum | cut -c1-16
}

# release TAG FOLDER: all steps below the lock, so that no other run replaces the staged files that this one builds from. The images of the
# same files are not built again.
release() {
  local node digest staged=$root/dist/images/.digest image name
  node=$("$root/bin/node" -p 'process.execPath')
  digest=$(release_digest "$node")
  if [ "$(cat "$staged" 2>/dev/null)" != "$digest" ] || ! has "localhost/temper:$digest" || ! has "localhost/temper-sandbox:$digest"; then
    rm -f "$staged"
    # Tests reach no server beyond this machine.
    NODE_RELEASE=skip make -s -C "$root" stage >&2
    image=$(release_base)
    for name in $(buildah_ images --format '{{.Name}}:{{.Tag}}' | grep -E '^localhost/temper(-sandbox)?:[0-9a-f]{16}$'); do
      buildah_ rmi "$name" >/dev/null
    done
    bud "$root/Containerfile" "localhost/temper:$digest" "$image"
    bud "$root/sandbox-image/Containerfile" "localhost/temper-sandbox:$digest" "$image"
    echo "$digest" >"$staged"
  fi
  for name in temper temper-sandbox; do
    buildah_ tag "localhost/$name:$digest" "localhost/$name:$1"
    export_ "localhost/$name:$1" "localhost/$name:$1" "$2/$name.tar"
  done
}

case ${1:-} in
  base) base ;;
  build)
    image=$(base)
    bud "$2" "$3" "$image"
    export_ "$3" "$3" "$4"
    ;;
  release) release "$2" "$3" ;;
  program)
    program=$(command -v "$2")
    container=$(buildah_ from scratch)
    mount=$(buildah_ mount "$container")
    cp -L "$program" "$mount"
    libraries "$program" "$mount"
    buildah_ umount "$container" >/dev/null
    buildah_ config --user 65534:65534 --entrypoint "[\"/$(basename "$program")\"]" "$container"
    buildah_ commit -q --rm "$container" "$3" >/dev/null
    export_ "$3" "$3" "$4"
    ;;
  *)
    sed -n '2,6p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
