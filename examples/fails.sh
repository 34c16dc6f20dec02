#!/bin/sh
# Shows: how a job fails. Its exit code 3 is what 'xce wait', 'xce run' and 'xce job' tell.
# Try:   xce run examples/fails.sh; echo $?
#XCE --name fails --time 1:00

echo 'looking for the input'
echo 'fails.sh: there is none' >&2
exit 3
