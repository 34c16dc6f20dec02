#!/bin/bash
# Installs what has been built: daemons, tools, libxce with headers and xce.pc. "tools/install.sh --help" tells more.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: tools/install.sh [--lib-only] [--destdir DIR] [--built DIR] PREFIX

  PREFIX         an absolute path, e.g. /usr/local: bin/, sbin/, lib/, include/xce/, share/doc/xce/ with examples of
                 settings, and the units of systemd in lib/systemd/system/
  --lib-only     libxce, its headers and xce.pc, but no daemons nor tools
  --destdir DIR  put the whole tree under DIR, to make a package of it
  --built DIR    where the built programs are (default bazel-bin; run ./dev build first)
TEXT
}
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 2; }

built=bazel-bin destdir='' all=1 prefix=''
while [ $# -gt 0 ]; do
  case $1 in
    --lib-only) all='' ;;
    --destdir) destdir=${2:?--destdir needs a directory}; shift ;;
    --built) built=${2:?--built needs a directory}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; fail "there is no option '$1'" ;;
    *) [ -z "$prefix" ] || fail "only one PREFIX"; prefix=$1 ;;
  esac
  shift
done
case $prefix in /*) ;; *) usage >&2; fail "PREFIX must be an absolute path" ;; esac
root=$destdir${prefix%/} version=$(cat libxce/abi/VERSION)

scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT

put() { # MODE FILE PLACE: refuses what has not been built
  [ -f "$2" ] || fail "$2 is not there: run ./dev build first"
  install -D -m "$1" "$2" "$root/$3"
}

put 755 "$built/libxce/abi/libxce.so.0" "lib/libxce.so.$version"
ln -sfn "libxce.so.$version" "$root/lib/libxce.so.0"
ln -sfn libxce.so.0 "$root/lib/libxce.so"
for header in libxce/include/xce/*.h; do put 644 "$header" "include/xce/${header##*/}"; done
install -d "$root/lib/pkgconfig"
sed -e "s|@PREFIX@|${prefix%/}|" -e "s|@VERSION@|$version|" libxce/abi/xce.pc.in > "$root/lib/pkgconfig/xce.pc"
chmod 644 "$root/lib/pkgconfig/xce.pc"

if [ -n "$all" ]; then
  for daemon in controller/xce_controller scheduler/xce_scheduler worker/xcecd worker/shepherd/xce_shepherd \
    apiserver/xce_apiserver; do
    put 755 "$built/$daemon" "sbin/${daemon##*/}"
  done
  for tool in cli/xce cli/xce_test; do put 755 "$built/$tool" "bin/${tool##*/}"; done
  for unit in packaging/systemd/*.service; do
    sed "s|@PREFIX@|${prefix%/}|" "$unit" > "$scratch"
    put 644 "$scratch" "lib/systemd/system/${unit##*/}"
  done
  put 644 packaging/systemd/xce.sysusers lib/sysusers.d/xce.conf
  for example in packaging/etc/*; do put 644 "$example" "share/doc/xce/etc/${example##*/}"; done
  for page in README.md ARCHITECTURE.md docs/*.md; do [ ! -f "$page" ] || put 644 "$page" "share/doc/xce/${page##*/}"; done
  for example in examples/* libxce/examples/*.c libxce/examples/*_wait.cc; do
    [ ! -f "$example" ] || put 644 "$example" "share/doc/xce/examples/${example##*/}"
  done
fi
printf 'install.sh: installed under %s\n' "$root" >&2
if [ -z "$destdir" ]; then printf 'install.sh: run ldconfig if %s/lib is a folder of the system\n' "${prefix%/}" >&2; fi
