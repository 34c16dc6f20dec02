#!/bin/bash
# The shared library exports exactly what the headers promise, under the right name and version.
set -euo pipefail
lib=libxce/abi/libxce.so.0
fail() { printf 'exports_test: %s\n' "$*" >&2; exit 1; }

promised=$(cat libxce/include/xce/*.h | tr '\n' ' ' | grep -oE 'XCE_API[^;(]*\(' | grep -oE 'xce[a-z_]*\($' |
  tr -d '(' | sort -u)
declared=$(sed 's@/\*.*\*/@@' libxce/include/xce/*.h | grep -oE '^[a-z].*\bxce[a-z_]+\(' | grep -v typedef || true)
[ -z "$declared" ] || fail "declared without XCE_API: $declared"
exported=$(nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 == "T" {print $3}' | sed 's/@@XCE_0$//' | sort -u)
if ! difference=$(diff <(printf '%s\n' "$promised") <(printf '%s\n' "$exported")); then
  fail "headers (<) and exports (>) differ; mend libxce/abi/libxce.map:" "$difference"
fi
others=$(nm -D --defined-only "$lib" | awk '$2 != "T" && !($2 == "A" && $3 ~ /^XCE_0/)')
[ -z "$others" ] || fail "exports more than functions: $others"

readelf -d "$lib" | grep -q 'SONAME.*\[libxce.so.0\]' || fail "the SONAME is not libxce.so.0"
! readelf -d "$lib" | grep -qE 'RPATH|RUNPATH' || fail "has a search path of its own"
grep -q "kVersion\[\] = \"$(cat libxce/abi/VERSION)\"" libxce/client/context.h || fail "abi/VERSION is not kVersion"
printf '%s functions, SONAME libxce.so.0\n' "$(printf '%s\n' "$exported" | wc -l)"
