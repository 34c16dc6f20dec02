#!/bin/sh
# Shows: a job to be killed, suspended and looked at. It counts, and says farewell when it is asked to end (SIGTERM).
# Try:   xce submit examples/long.sh; xce logs -f ID; xce kill ID
#XCE --name long --time 1:00:00

trap 'echo "asked to end after $n s"; exit 143' TERM
n=0
while [ "$n" -lt "${1:-600}" ]; do
  echo "still here after $n s"
  sleep 1
  n=$((n + 1))
done
