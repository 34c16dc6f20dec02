#!/bin/bash
# Formats every tracked C++, Go and Bazel file.
set -euo pipefail
. tools/lint/files.sh
cxx_files | xargs -r -d '\n' clang-format-14 -i
bazel_files | xargs -r -d '\n' "$buildifier" -mode=fix -lint=off
go_files | xargs -r -d '\n' "$go_bin/gofmt" -w
