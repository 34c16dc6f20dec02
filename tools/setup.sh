#!/bin/bash
# Installs what XCE needs to build on Debian 12 and is missing: Debian packages, libraft (and Go, where none new
# enough is installed) from Debian's backports, Go modules and buildifier. Quick when nothing is missing.
# Touches no apt configuration: backports are read through a private source list derived from the machine's own.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
state=${XDG_CACHE_HOME:-$HOME/.cache}/xce
mkdir -p "$state"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
apt_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends "$@" >/dev/null; }

command -v dpkg-query >/dev/null || die "this is not a Debian system; XCE is built on Debian 12 (see README.md)"

mapfile -t wanted < <(sed 's/#.*//' "$root/tools/packages.txt" | tr -d ' ' | grep -v '^$')
[ "${1:-}" != fuzz ] || wanted+=(libfuzzer-14-dev libclang-rt-14-dev)
missing=()
for p in "${wanted[@]}"; do installed "$p" || missing+=("$p"); done
if ((${#missing[@]})); then
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root apt-get -qq update || die "apt-get update failed: check the network and the apt sources"
  apt_install install "${missing[@]}" || die "apt-get could not install them: run 'apt-get install ${missing[*]}' and read its message"
fi

# The directory of the newest Go that satisfies go.mod (>= 1.23), or nothing.
find_go() {
  local d v
  for d in "$(dirname "$(command -v go 2>/dev/null || echo /nonexistent/go)")" /usr/local/go/bin /usr/lib/go-*/bin; do
    [ -x "$d/go" ] || continue
    v=$(GOTOOLCHAIN=local "$d/go" env GOVERSION 2>/dev/null | sed -E 's/^go([0-9]+)\.([0-9]+).*/\1 \2/')
    read -r major minor <<<"$v" || continue
    if [ "${major:-0}" -gt 1 ] || { [ "${major:-0}" = 1 ] && [ "${minor:-0}" -ge 23 ]; }; then echo "$d"; return; fi
  done
}

backports() { # PACKAGE...: install from Debian's backports suite of this machine's own mirror
  local uri keys dir
  uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -nE -e 's#^URIs:[[:space:]]*([^[:space:]]*/debian)/?([[:space:]].*)?$#\1#p' -e 's#^deb([[:space:]]+\[[^]]*\])?[[:space:]]+([^[:space:]]*/debian)/?[[:space:]].*#\2#p' | head -n 1 || true)
  [ -n "$uri" ] || die "found no Debian mirror in /etc/apt/sources.list*: add one, or install $* from bookworm-backports by hand"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  dir=$(mktemp -d); chmod 755 "$dir"; mkdir -p "$dir/parts" "$dir/lists/partial"
  cat /etc/apt/sources.list.d/debian.sources >"$dir/parts/debian.sources" 2>/dev/null || true
  printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' "$uri" "$keys" >"$dir/parts/backports.sources"
  local opts=(-o "Dir::Etc::sourceparts=$dir/parts" -o "Dir::State::lists=$dir/lists")
  as_root apt-get -qq "${opts[@]}" update || die "could not read bookworm-backports from $uri"
  apt_install "${opts[@]}" -t bookworm-backports install "$@" || die "could not install $* from bookworm-backports"
  as_root rm -rf "$dir"
}

from_backports=()
raft=$(dpkg-query -W -f='${Version}' libraft-dev 2>/dev/null || true)
case "$raft" in 0.22.*) ;; *) from_backports+=(libraft-dev) ;; esac
[ -n "$(find_go)" ] || from_backports+=(golang-1.23-go)
if ((${#from_backports[@]})); then say "installing from backports: ${from_backports[*]}"; backports "${from_backports[@]}"; fi

go_bin=$(find_go)
[ -n "$go_bin" ] || die "no Go >= 1.23 found after installation"
modcache=$(GOTOOLCHAIN=local "$go_bin/go" env GOMODCACHE)
while read -r module; do # the folder of each go.mod
  grep -q '^require' "$module/go.mod" || continue
  stamp=$state/go-$(cat "$module/go.mod" "$module/go.sum" 2>/dev/null | sha256sum | cut -c1-16)
  if [ ! -e "$stamp" ] || [ ! -d "$modcache" ]; then
    say "downloading Go modules of ${module#"$root/"}"
    (cd "$module" && GOTOOLCHAIN=local GOFLAGS=-mod=mod "$go_bin/go" mod download) || die "go mod download failed in $module"
    touch "$stamp"
  fi
done < <(find "$root" -name 'bazel-*' -prune -o -name node_modules -prune -o -name go.mod -printf '%h\n' | sort)
if [ "${1:-}" = lint ] && [ ! -x "$state/bin/buildifier" ]; then
  say "building buildifier"
  GOTOOLCHAIN=local GOBIN=$state/bin "$go_bin/go" install github.com/bazelbuild/buildtools/buildifier@v0.0.0-20240918101019-be1c24cc9a44
fi
