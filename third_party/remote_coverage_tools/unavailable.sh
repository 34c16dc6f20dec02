#!/bin/bash
echo "Bazel's coverage tools are not part of this tree: 'bazel coverage' does not work here" >&2
exit 1
