#!/bin/bash
# builder.sh PARAMS: copies a Go module's sources to a scratch folder and builds one package there. Run by rules.bzl.
set -euo pipefail
root=$PWD
params=$1
mode='' out='' goroot='' modcache='' cache='' gopath='' module='' package='' xdefs=''
flags=() cgo_packages=()
stage=$(mktemp -d "${TMPDIR:-/tmp}/gobuild.XXXXXX")
trap 'chmod -R u+w "$stage"; rm -rf "$stage"' EXIT

while IFS=$'\t' read -r key a b; do
  case $key in
    mode | out | goroot | modcache | cache | gopath | module | package) printf -v "$key" %s "$a" ;;
    flag) flags+=("$a") ;;
    xdef) xdefs+=" -X '$a'" ;;
    src) install -D -m 644 "$a" "$stage/src/$b" ;; # a copy: go:embed refuses links
    cgo) cgo_packages+=("$a"); list=$stage/cgo.$((${#cgo_packages[@]} - 1)); : >"$list.c"; : >"$list.ld"; : >"$list.files" ;;
    cflag) printf '%s\n' "${a//%ROOT%/$root}" >>"$list.c" ;;
    ldflag) printf '%s\n' "${a//%ROOT%/$root}" >>"$list.ld" ;;
    cfile) printf '%s\n' "$a" >>"$list.files" ;;
  esac
done <"$params"

# Flags for packages with cdeps. Go's cache knows no header or archive outside of a package: their digest among the flags
# makes it compile anew when one of them changed.
for i in "${!cgo_packages[@]}"; do
  dir=$stage/src/${cgo_packages[$i]} list=$stage/cgo.$i
  digest=$(sort -u "$list.files" | xargs -r -d '\n' sha256sum | sha256sum | cut -c1-32)
  name=$(cat "$dir"/*.go | sed -nE 's/^package ([A-Za-z0-9_]+).*/\1/p' | grep -v '_test$' | head -n 1)
  {
    printf 'package %s\n\n/*\n' "$name"
    printf '#cgo CPPFLAGS: -DXCE_CGO_INPUTS=0x%s %s\n' "$digest" "$(tr '\n' ' ' <"$list.c")"
    printf '#cgo CXXFLAGS: -std=c++17\n'
    printf '#cgo LDFLAGS: %s\n*/\nimport "C"\n' "$(tr '\n' ' ' <"$list.ld")"
  } >"$dir/zz_bazel_cgo.go"
done

export HOME=${HOME:-$gopath} PATH=$goroot/bin:/usr/local/bin:/usr/bin:/bin GOROOT=$goroot GOPATH=$gopath GOMODCACHE=$modcache
export GOCACHE=$cache GOENV=off GOWORK=off GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=1
export CC=/usr/bin/gcc CXX=/usr/bin/g++ CGO_CFLAGS='-O2 -g1' CGO_CXXFLAGS='-O2 -g1' CGO_CPPFLAGS_ALLOW='.*' CGO_CFLAGS_ALLOW='.*' CGO_LDFLAGS_ALLOW='.*'
ldflags="-extld=/usr/bin/g++$xdefs"
case $package in "$module") target=. ;; *) target=./${package#"$module"/} ;; esac
cd "$stage/src/$module"
common=(-p 2 -trimpath -buildvcs=false -ldflags="$ldflags" "${flags[@]}" -o "$root/$out" "$target")
if [ "$mode" = build ]; then
  go build "${common[@]}"
else
  go test -c -vet=off "${common[@]}"
  [ -e "$root/$out" ] || { echo "no test files in $package" >&2; exit 1; }
fi
