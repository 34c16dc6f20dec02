#!/bin/bash
# A program of somebody else: compiled as C and as C++ against the installed headers, found by pkg-config, linked with
# the installed library.
set -euo pipefail
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
root=$TEST_TMPDIR/root prefix=/opt/xce
tools/install.sh --lib-only --built . --destdir "$root" "$prefix"
[ "$(readlink "$root$prefix/lib/libxce.so")" = libxce.so.0 ] || fail "libxce.so does not name libxce.so.0"
[ "$(readlink "$root$prefix/lib/libxce.so.0")" = "libxce.so.$(cat libxce/abi/VERSION)" ] || fail "libxce.so.0 names no file"
grep -qx "prefix=$prefix" "$root$prefix/lib/pkgconfig/xce.pc" || fail "xce.pc has another prefix"

export PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
[ "$(pkg-config --modversion xce)" = "$(cat libxce/abi/VERSION)" ] || fail "xce.pc has another version"
read -ra flags < <(pkg-config --cflags --libs xce)
for compiler in "gcc -std=c11" "gcc -std=gnu17" "g++ -std=c++17"; do
  source=libxce/examples/submit.c
  case $compiler in g++*) source=libxce/examples/submit_and_wait.cc ;; esac
  $compiler -Wall -Wextra -Wpedantic -Werror "$source" "${flags[@]}" -o "$TEST_TMPDIR/program" || fail "$compiler $source"
  code=0
  LD_LIBRARY_PATH=$root$prefix/lib "$TEST_TMPDIR/program" 2> "$TEST_TMPDIR/said" || code=$?
  [ "$code" = 2 ] || fail "$source without arguments: exit code $code"
  grep -q usage: "$TEST_TMPDIR/said" || fail "$source does not say how to use it"
done
# Every header stands alone.
for header in "$root$prefix"/include/xce/*.h; do
  printf '#include <xce/%s>\n' "$(basename "$header")" > "$TEST_TMPDIR/one.c"
  gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only "-I$root$prefix/include" "$TEST_TMPDIR/one.c" || fail "$header"
done
