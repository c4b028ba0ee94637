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

# build FILE NAME ARCHIVE BASE
build() {
  buildah_ bud -q --isolation chroot --pull-never --layers --build-arg "BASE=$4" -t "$2" -f "$1" "$root" >/dev/null
  export_ "$2" "$2" "$3"
}

# release TAG FOLDER: both steps below the lock, so that no other run replaces the staged files that this one builds from.
release() {
  # Tests reach no server beyond this machine.
  NODE_RELEASE=skip make -s -C "$root" stage >&2
  local image
  image=$(release_base)
  build "$root/Containerfile" "localhost/temper:$1" "$2/temper.tar" "$image"
  build "$root/sandbox-image/Containerfile" "localhost/temper-sandbox:$1" "$2/temper-sandbox.tar" "$image"
}

case ${1:-} in
  base) base ;;
  build)
    image=$(base)
    build "$2" "$3" "$4" "$image"
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
