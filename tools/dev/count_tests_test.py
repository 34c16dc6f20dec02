"""What count_tests.py makes of Bazel's events."""

import json
import subprocess
import sys
import tempfile
import unittest


def configured(label, kind="cc_test rule"):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind}}


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


class CountTestsTest(unittest.TestCase):
    def run_it(self, events, code=0):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("\n".join(json.dumps(e) for e in events))
            file.flush()
            done = subprocess.run(
                [sys.executable, "tools/dev/count_tests.py", file.name, str(code)], stdout=subprocess.PIPE, check=False
            )
        return done.stdout.decode().strip().split("\n")[-1], done.returncode

    def test_all_passed(self):
        self.assertEqual(self.run_it([configured("//a"), summary("//a", "PASSED")]), ("1 passed, 0 failed", 0))

    def test_libraries_do_not_count(self):
        events = [configured("//l", "cc_library rule"), configured("//a"), summary("//a", "FLAKY")]
        self.assertEqual(self.run_it(events), ("1 passed, 0 failed", 0))

    def test_one_failed(self):
        events = [configured("//a"), configured("//b"), summary("//a", "PASSED"), summary("//b", "TIMEOUT")]
        self.assertEqual(self.run_it(events, 3), ("1 passed, 1 failed", 3))

    def test_one_did_not_build(self):
        events = [configured("//a"), configured("//b"), summary("//a", "PASSED")]
        self.assertEqual(self.run_it(events, 1), ("1 passed, 1 failed", 1))

    def test_a_build_failure_without_a_failed_test_fails(self):
        self.assertEqual(self.run_it([configured("//a"), summary("//a", "PASSED")], 1), ("1 passed, 0 failed", 1))

    def test_no_test_is_a_failure(self):
        self.assertEqual(self.run_it([]), ("0 passed, 0 failed", 1))


if __name__ == "__main__":
    unittest.main()
