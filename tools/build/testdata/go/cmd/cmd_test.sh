#!/bin/bash
# A Go program over a C++ library links and runs.
out=$(tools/build/testdata/go/cmd/cmd)
[ "$out" = "native 3 embedded 1.2" ] || { echo "got: $out"; exit 1; }
