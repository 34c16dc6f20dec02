#!/bin/sh
# Shows: a time limit. The job asks for one second, sleeps for sixty, and is ended with state TIMEOUT.
# Try:   xce submit --wait examples/overtime.sh
#XCE --name overtime --time 1

echo 'sleeping longer than asked for'
sleep 60
echo 'never reached'
