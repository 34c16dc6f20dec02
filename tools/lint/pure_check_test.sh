#!/bin/bash
# pure_check.py finds each kind of impurity, and accepts what only looks like one.
set -u
check=$PWD/tools/lint/pure_check.py
root=$TEST_TMPDIR/tree
dir=$root/controller/state
mkdir -p "$dir"
failed=0

expect() { # clean|found LINE: what the check must say of a source file that consists of LINE
  printf '%s\n' "$2" >"$dir/x.cc"
  if python3 "$check" "$root" >"$TEST_TMPDIR/out" 2>&1; then got=clean; else got=found; fi
  if [ "$got" != "$1" ]; then echo "expected $1: $2"; cat "$TEST_TMPDIR/out"; failed=1; fi
}

while IFS= read -r line; do expect found "$line"; done <<'LINES'
#include <chrono>
#include <unordered_map>
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include <sys/socket.h>
#include <iostream>
#include <random>
#include <uv.h>
auto t = std::chrono::steady_clock::now();
time_t t = time(nullptr);
absl::Time t = absl::Now();
int r = rand();
thread_local int x;
std::cerr << "x";
LINES
while IFS= read -r line; do expect clean "$line"; done <<'LINES'
#include <map>
#include <sys/types.h>
#include "absl/time/time.h"
#include "libxce/model/time.h"
// A std::thread would be wrong here.
/* #include <chrono> */ int x;
state.time(now);
job.set_reason("rand() in a std::thread");
std::unordered_map<int, int> x;  // pure: looked up by key only, never iterated
LINES

printf '#include <chrono>\n' >"$dir/x_test.cc"
expect clean 'int x;'
exit $failed
