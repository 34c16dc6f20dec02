#!/bin/bash
# run.sh [--all] [NAME...]: applies each named fault (tools/mutants/NAME.patch; default: every one) to the last commit, in
# a worktree of its own, and shows which test catches it. The tests that should are named in the patch; they run in that
# order until one fails, or with --all every one. Exit code 1 when a fault survives, does not apply or does not build.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
root=$PWD every=no names=()
for a in "$@"; do
  case $a in
    --all) every=yes ;;
    -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) [ -f "tools/mutants/$a.patch" ] || { echo "mutants: there is no fault '$a'; there are: $(cd tools/mutants && echo *.patch | sed 's/\.patch//g')" >&2; exit 2; }
      names+=("$a") ;;
  esac
done
if ((${#names[@]} == 0)); then
  for f in tools/mutants/*.patch; do f=${f##*/}; names+=("${f%.patch}"); done
fi

scratch=$(mktemp -d)
tree=$scratch/tree
finish() {
  if [ -d "$tree" ]; then
    (cd "$tree" && bazel clean --expunge >/dev/null 2>&1; bazel shutdown >/dev/null 2>&1)
    git -C "$root" worktree remove --force "$tree"
  fi
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM
git worktree add -q --detach "$tree" HEAD || exit 2
git diff --quiet HEAD || echo "mutants: what is not committed takes no part" >&2

field() { sed -n "s/^# $1: //p" "$root/tools/mutants/$2.patch"; }
first_failure() { # LABEL: the first test case that failed, from the test's log
  local log=bazel-testlogs/${1#//}
  log=${log/://}/test.log
  sed -nE -e 's/^\[  FAILED  \] ([A-Za-z0-9_/]+\.[A-Za-z0-9_/]+).*/\1/p' -e 's/^ *--- FAIL: ([^ ]+).*/\1/p' "$log" 2>/dev/null | head -n 1
}

row() { printf '%-24s %-9s %s\n' "$1" "$2" "$3"; }
table=()
bad=0
cd "$tree" || exit 2
for name in "${names[@]}"; do
  git checkout -q --force HEAD -- . || exit 2
  if ! git apply --recount "$root/tools/mutants/$name.patch"; then
    table+=("$(row "$name" BROKEN "the patch does not apply any more: make it anew")")
    bad=1
    continue
  fi
  echo "mutants: $name: $(field Fault "$name")" >&2
  caught=() survived=() broken=
  for label in $(field Tests "$name"); do
    bazel test --test_output=errors "$label" >"$scratch/log" 2>&1
    case $? in
      0) survived+=("$label") ;;
      3) caught+=("$label ($(first_failure "$label"))"); [ $every = yes ] || break ;;
      *) broken=$label; tail -n 25 "$scratch/log" >&2; break ;;
    esac
  done
  if [ -n "$broken" ]; then
    table+=("$(row "$name" BROKEN "$broken could not be built")"); bad=1
  elif ((${#caught[@]} == 0)); then
    table+=("$(row "$name" SURVIVED "not seen by ${survived[*]}")"); bad=1
  else
    for one in "${caught[@]}"; do table+=("$(row "$name" caught "$one")"); done
    for one in ${survived[@]+"${survived[@]}"}; do table+=("$(row "" "" "not by $one")"); done
  fi
  echo "${table[-1]}" >&2
done
printf '\n'
row MUTANT RESULT "BY"
printf '%s\n' "${table[@]}"
exit $bad
