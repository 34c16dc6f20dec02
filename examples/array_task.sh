#!/bin/sh
# Shows: an array; each task does its own share of the work, told by XCE_ARRAY_INDEX, at most two at once.
# Try:   xce submit examples/array_task.sh      and then: xce job ID, xce logs 'ID[3]'
#XCE --name squares --array 0-9%2 --time 1:00 --output squares-%A-%a.out
set -eu

index=${XCE_ARRAY_INDEX:?this script is a task of an array; submit it with --array}
sum=$(awk -v from="$((index * 1000))" 'BEGIN { for (n = from; n < from + 1000; n++) sum += n * n; printf "%.0f", sum }')
echo "task $index: the squares of $((index * 1000)) to $((index * 1000 + 999)) sum up to $sum"
