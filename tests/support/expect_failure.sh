#!/bin/sh
# Runs a job that must fail by itself: expect_failure.sh SECONDS TEXT COMMAND...
# Succeeds if the command ends within the time, with an error, and prints TEXT.
seconds=$1
text=$2
shift 2
begin=$(date +%s)
output=$(timeout -k 5 "$seconds" "$@" 2>&1)
code=$?
printf '%s\n' "$output"
if [ $code -eq 0 ]; then
    echo "expected a failure, but the job succeeded"
    exit 1
fi
if [ $(($(date +%s) - begin)) -ge "$seconds" ]; then
    echo "the job hung and was ended after $seconds s"
    exit 1
fi
case $output in
*"$text"*) echo "ended as it should, with exit code $code" ;;
*)
    echo "no \"$text\" in the output"
    exit 1
    ;;
esac
