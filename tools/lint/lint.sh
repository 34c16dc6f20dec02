#!/bin/bash
# lint.sh [--all]: every check that reads sources without running them. clang-tidy looks at the files that differ from
# the last commit but one, or at all with --all.
set -uo pipefail
. tools/lint/files.sh
failed=()

check() { # NAME COMMAND...: runs it, remembers a failure
  local name=$1; shift
  printf 'lint: %s\n' "$name" >&2
  "$@" || failed+=("$name")
}

format() { # says which files; ./dev fmt mends them
  local bad
  bad=$(cxx_files | xargs -r -d '\n' -P 2 -n 20 clang-format-14 --dry-run -Werror 2>&1 |
    sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error: .*/\1: not formatted (.\/dev fmt)/p' | sort -u)
  [ -z "$bad" ] || { printf '%s\n' "$bad"; return 1; }
}
# Not for us: docstring and load rules that fight the native rules of Bazel 4.
bazel_format() {
  local off=-native-cc,-native-java,-native-sh,-native-py,-native-proto,-module-docstring,-function-docstring
  off+=,-function-docstring-args,-function-docstring-return,-function-docstring-header,-unnamed-macro
  off+=,-provider-params,-load,-rule-impl-return,-build-args-kwargs
  bazel_files | xargs -r -d '\n' "$buildifier" -mode=check -lint=warn "-warnings=$off"
}
go_format() {
  local bad
  bad=$(go_files | xargs -r -d '\n' "$go_bin/gofmt" -l)
  [ -z "$bad" ] || { printf '%s: not formatted (./dev fmt)\n' $bad; return 1; }
}
go_vet() {
  [ -f apiserver/go.mod ] || return 0
  # Packages over libxce need its headers only: vet does not link.
  (cd e2e/checker/check && GOFLAGS=-mod=readonly GOTOOLCHAIN=local "$go_bin/go" vet ./...) || return 1
  (cd apiserver && CGO_CFLAGS="-I$PWD/.. -I$PWD/../libxce/include" GOFLAGS=-mod=readonly GOTOOLCHAIN=local "$go_bin/go" vet ./...)
}
shells() {
  local f bad=0
  while IFS= read -r f; do bash -n "$f" || bad=1; done < <(ours '*.sh' dev .ci/run)
  return $bad
}
tidy() {
  local files
  if [ "${1:-}" = --all ]; then files=$(ours '*.cc')
  else
    files=$( (git diff --name-only HEAD~1 -- '*.cc' 2>/dev/null || ours '*.cc'; git ls-files -o --exclude-standard -- '*.cc') |
      sort -u | while IFS= read -r f; do [ ! -f "$f" ] || echo "$f"; done)
  fi
  [ -n "$files" ] || return 0
  # Headers that a genrule makes must exist for clang to read what includes them.
  bazel query 'kind(genrule, //...)' 2>/dev/null | xargs -r -d '\n' bazel build -k >/dev/null 2>&1
  printf '%s\n' "$files" | xargs -r -d '\n' -P 2 -n 1 tools/lint/tidy.sh
}

check "C++ format" format
check "Bazel files" bazel_format
check "Go format" go_format
check "Go vet" go_vet
check "shell syntax" shells
check "pure folders" python3 tools/lint/pure_check.py
check "requirements" python3 tools/lint/requirements_check.py
check "clang-tidy" tidy "$@"

if ((${#failed[@]})); then printf 'lint: failed: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2; exit 1; fi
echo "lint: clean" >&2
