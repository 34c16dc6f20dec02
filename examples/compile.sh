#!/bin/sh
# Shows: a job that builds a program and runs it, in a scratch directory that it removes again.
# Try:   xce submit --wait examples/compile.sh 1000
#XCE --name compile --cpus 1 --memory 256M --time 1:00
set -eu

limit=${1:-1000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat > "$dir/primes.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>

/* Counts the primes below its argument by trial division. */
int main(int argc, char **argv) {
  int limit = argc > 1 ? atoi(argv[1]) : 1000, count = 0;
  for (int n = 2; n < limit; n++) {
    int prime = 1;
    for (int d = 2; d * d <= n && prime; d++) prime = n % d != 0;
    count += prime;
  }
  printf("%d primes below %d\n", count, limit);
  return 0;
}
EOF
gcc -O1 -o "$dir/primes" "$dir/primes.c"
"$dir/primes" "$limit"
