#!/usr/bin/env python3
"""count_tests.py EVENTS CODE: prints "N passed, N failed" of a `bazel test` run.

EVENTS is the file that --build_event_json_file wrote, CODE bazel's exit status. A test target that was found but did not
run (it failed to build, or Bazel stopped before) counts as failed. Exit status 0 only if bazel succeeded, at least one
test ran and none failed.
"""

import json
import sys

PASSED = {"PASSED", "FLAKY"}


def count(events):
    """Returns {label: status} of all test targets in an iterable of build events."""
    status = {}
    for event in events:
        name = event.get("id", {})
        if "targetConfigured" in name:
            configured = event.get("configured", {})
            if "testSize" in configured or configured.get("targetKind", "").endswith("_test rule"):
                status.setdefault(name["targetConfigured"]["label"], "NOT RUN")
            elif event.get("aborted"):
                # The kind of a target that failed in analysis is unknown; a name tells a test by the house's convention.
                label = name["targetConfigured"]["label"]
                if label.endswith("_test") and event["aborted"].get("reason") not in ("SKIPPED", "NO_ANALYZE"):
                    status.setdefault(label, "NOT ANALYZED")
        elif "testSummary" in name:
            status[name["testSummary"]["label"]] = event.get("testSummary", {}).get("overallStatus", "NO_STATUS")
    return status


def read(path):
    """Yields the events of a file whose last line may be cut short."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return


def main():
    code = int(sys.argv[2])
    status = count(read(sys.argv[1]))
    bad = sorted(label for label, s in status.items() if s not in PASSED)
    passed = len(status) - len(bad)
    sys.stderr.flush()
    for label in bad:
        print("%s: %s" % (label, status[label]))
    if code and not bad:
        print("bazel failed with exit status %d: see above" % code)
    elif not status:
        print("no test was found")
    print("%d passed, %d failed" % (passed, len(bad)), flush=True)
    return code or (1 if bad or not passed else 0)


if __name__ == "__main__":
    sys.exit(main())
