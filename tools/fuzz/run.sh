#!/bin/bash
# run.sh TARGET|all [--seconds N]: fuzzes a target of //fuzz with clang's libFuzzer, under the address and the
# undefined behaviour sanitizers. What it has found interesting before is kept in the user's cache and gone on from. A
# crash ends it: the input's path is printed, to be moved to fuzz/corpus/TARGET once the fault is mended.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/xce/fuzz
seconds=60 target=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift 2 ;;
    --seconds=*) seconds=${1#*=}; shift ;;
    -*) echo "fuzz: there is no option '$1'; ./dev fuzz TARGET --seconds N" >&2; exit 2 ;;
    *) target=$1; shift ;;
  esac
done
mapfile -t targets < <(sed -nE '/^xce_fuzz_target/,/name/s/^ *name = "(.*)",/\1/p' fuzz/BUILD.bazel)
if [ -z "$target" ]; then
  printf '%s\n' "${targets[@]}"
  exit 0
fi
[ "$target" = all ] || [[ " ${targets[*]} " = *" $target "* ]] ||
  { echo "fuzz: there is no target '$target'; there are: ${targets[*]}" >&2; exit 2; }
[ "$target" = all ] || targets=("$target")
targets=("${targets[@]/%/_fuzzer}")

bazel build --config=fuzz "${targets[@]/#///fuzz:}" || { echo "fuzz: could not build them" >&2; exit 1; }
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for name in "${targets[@]}"; do cp "bazel-bin/fuzz/$name" "$bin/"; done # another build may replace them

export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
found=()
for name in "${targets[@]/%_fuzzer/}"; do
  mkdir -p "$cache/$name"
  echo "fuzz: $name for $seconds s" >&2
  "$bin/${name}_fuzzer" "$cache/$name" "fuzz/corpus/$name" "-artifact_prefix=$cache/$name-" "-max_total_time=$seconds" \
    -max_len=65536 -len_control=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10 -print_final_stats=1 -verbosity=0 2>&1 |
    { grep -v '^INFO' || true; } || found+=("$name")
done
if ((${#found[@]})); then
  echo "fuzz: found faults in ${found[*]}. Mend them and move the inputs to fuzz/corpus/TARGET/." >&2
  exit 1
fi
