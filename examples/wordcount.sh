#!/bin/sh
# Shows: a text pipeline with arguments; the ten most frequent words of some files, or of its own text.
# Try:   xce submit --output words.txt examples/wordcount.sh README.md
#XCE --name wordcount --cpus 1 --time 1:00
set -eu

text() {
  if [ $# -gt 0 ]; then
    cat -- "$@"
  else
    echo 'the quick brown fox jumps over the lazy dog and the dog sleeps on while the fox runs'
  fi
}

text "$@" |
  tr '[:upper:]' '[:lower:]' |
  tr -cs '[:alpha:]' '\n' |
  awk 'NF { count[$1]++ } END { for (word in count) print count[word], word }' |
  sort -k1,1nr -k2,2 |
  awk 'NR <= 10'
