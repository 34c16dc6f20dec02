# shellcheck shell=bash
# Sourced by lint.sh and fmt.sh: which files are ours, and where the tools are. Run from the workspace root.
buildifier=${XDG_CACHE_HOME:-$HOME/.cache}/xce/bin/buildifier
go_bin=
for d in /usr/local/go/bin /usr/lib/go-*/bin; do [ -x "$d/go" ] && go_bin=$d && break; done

# Tracked files and new ones that git does not ignore, if they still exist.
ours() { git ls-files -co --exclude-standard -- "$@" | while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done; }
cxx_files() { ours '*.cc' '*.h' '*.c'; }
bazel_files() { ours '*BUILD.bazel' '*.bzl' WORKSPACE '*/WORKSPACE'; }
go_files() { ours '*.go'; }
