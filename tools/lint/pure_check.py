#!/usr/bin/env python3
"""Refuses impure code in the folders that DESIGN calls pure: clocks, randomness, I/O, threads, logging, hash iteration.

The build already refuses impure dependencies (xce_pure_library); this reads what the build cannot see, namely system
headers and the parts of the standard library. Usage: pure_check.py [ROOT]. Prints file:line: reason; exit status 1 if
anything was found. A line that is right in spite of the check ends with "// pure: <why>".
"""

import glob
import os
import re
import sys

# Globs from the workspace root. Tests may do as they please.
PURE = [
    "libxce/model/**/*",
    "libxce/client/failover*",
    "libxce/client/client_failover*",
    "controller/state/**/*",
    "scheduler/policy/**/*",
    "worker/lifecycle/**/*",
]
EXEMPT = re.compile(r"(_test|_bench|_testutil|_fuzz)\.(cc|h)$|/testdata/")

HEADERS = {
    "a clock": r"chrono|ctime|time\.h|sys/time\.h|sys/times\.h|absl/time/clock\.h|uv\.h",
    "randomness": r"random|absl/random/.*|sys/random\.h",
    "I/O": r"iostream|fstream|cstdio|stdio\.h|ostream|istream|iomanip|filesystem|fcntl\.h|unistd\.h|"
    r"sys/(?!types\.h).*|netdb\.h|netinet/.*|arpa/.*|poll\.h|dirent\.h|openssl/.*|uv/.*|rocksdb/.*|systemd/.*",
    "threads": r"thread|mutex|shared_mutex|condition_variable|future|atomic|semaphore\.h|pthread\.h|"
    r"absl/synchronization/.*|absl/base/(thread_annotations|call_once)\.h",
    "logging": r"spdlog/.*|syslog\.h|absl/log/.*|libxce/base/log\.h",
    "signals or processes": r"csignal|signal\.h|spawn\.h",
    "hash containers (their order differs between machines)": r"unordered_map|unordered_set|"
    r"absl/container/(flat|node)_hash_.*",
}
HEADERS = [(what, re.compile(r'^\s*#\s*include\s*[<"](?:%s)[>"]' % names)) for what, names in HEADERS.items()]

WORDS = {
    "a clock": r"\bstd::chrono::\w*_clock\b|\b(?:clock_gettime|gettimeofday|timespec_get)\s*\(|"
    r"(?<![\w.>:])(?:std::|::)?time\s*\(\s*(?:NULL|nullptr|0|&\w+)\s*\)|\babsl::(?:Now|GetCurrentTimeNanos)\s*\(",
    "randomness": r"\bstd::(?:random_device|mt19937(?:_64)?|rand|srand|shuffle)\b|\babsl::(?:BitGen|InsecureBitGen)\b|"
    r"(?<![\w.>:])(?:s?rand|random|getrandom|arc4random)\s*\(\s*\w*\s*\)",
    "I/O": r"\bstd::(?:cout|cerr|clog|cin|i?o?fstream|filesystem|getenv)\b|"
    r"(?<![\w.>:])(?:printf|fprintf|fopen|getenv|perror)\s*\(|\babsl::(?:FPrintF|PrintF)\b",
    "threads": r"\bstd::(?:thread|mutex|shared_mutex|condition_variable|atomic|async|future|promise)\b|"
    r"\bthread_local\b|\babsl::(?:Mutex|MutexLock|Notification|SleepFor)\b",
    "logging": r"\bspdlog::|\bXCE_LOG\b|\bLOG\s*\(",
    "hash containers (their order differs between machines)": r"\bstd::unordered_\w+|\babsl::(?:flat|node)_hash_\w+|"
    r"\bstd::hash\b|\babsl::(?:Hash|HashOf)\b",
    "a value that depends on memory layout": r"\breinterpret_cast<\s*(?:std::)?u?intptr_t",
}
WORDS = [(what, re.compile(regex)) for what, regex in WORDS.items()]

STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def code_lines(text):
    """Yields (number, raw line, code): the code has no comments and, unless it is an #include, no strings."""
    in_comment = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw if re.match(r"\s*#\s*include", raw) else STRING.sub('""', raw)
        code = ""
        while line:
            if in_comment:
                _, found, line = line.partition("*/")
                in_comment = not found
            else:
                starts = [i for i in (line.find("//"), line.find("/*")) if i >= 0]
                if not starts:
                    code, line = code + line, ""
                elif line.startswith("/*", min(starts)):
                    code, line, in_comment = code + line[: min(starts)], line[min(starts) + 2 :], True
                else:
                    code, line = code + line[: min(starts)], ""
        yield number, raw, code


def findings(text):
    """Yields (line number, reason) for each impure line of a C++ source."""
    for number, raw, code in code_lines(text):
        if re.search(r"// pure: \S", raw):
            continue
        for what, regex in HEADERS + WORDS:
            if regex.search(code):
                yield number, what
                break


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    paths = {p for g in PURE for p in glob.glob(os.path.join(root, g), recursive=True)}
    bad = 0
    for path in sorted(p for p in paths if re.search(r"\.(cc|h|c)$", p) and not EXEMPT.search(p)):
        with open(path, encoding="utf-8") as file:
            for number, what in findings(file.read()):
                print("%s:%d: %s has no place in pure code" % (os.path.relpath(path, root), number, what))
                bad += 1
    if bad:
        print("pass the value in, return the effect, or explain on the line: // pure: <why>", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
