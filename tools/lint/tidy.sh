#!/bin/bash
# tidy.sh FILE: clang-tidy over one of our C++ files with the flags that Bazel would give it; quiet unless it finds something.
defines=(-DSPDLOG_SHARED_LIB -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -DTOML_HEADER_ONLY=0 -DTOML_SHARED_LIB=1)
out=$(clang-tidy-14 --quiet "$1" -- -std=c++17 -iquote . -iquote bazel-bin -I libxce/include "${defines[@]}" -Wno-everything 2>&1)
code=$?
# clang-tidy 14 counts suppressed warnings on stderr even with --quiet.
printf '%s\n' "$out" | grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated\.$|^$|^Suppressed|^Use -header-filter' || true
exit $code
