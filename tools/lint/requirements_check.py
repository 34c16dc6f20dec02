#!/usr/bin/env python3
"""docs/requirements.md against the sources: every number is there, every file and every test that it names exists."""
import os
import re
import sys

PAGE = "docs/requirements.md"
COUNTS = {"L": [3, 5, 4, 5, 3, 3, 2, 4], "A": [7, 5, 3, 2, 2, 2, 6]}


def main():
    wrong = []
    seen = []
    for number, line in enumerate(open(PAGE, encoding="utf-8"), 1):
        match = re.match(r"\| ([LA]\d\.\d) \|", line)
        if match:
            seen.append(match.group(1))
        if not line.startswith("| ") or "`" not in line:
            continue
        shown = re.sub(r" \(gap: .*\)", "", line).strip().rstrip("|").split(" | ")[-1]
        for part in shown.split("; "):
            named = re.match(r"`([^`]+)` (.+)", part.strip())
            if not named:
                wrong.append(f"{PAGE}:{number}: cannot read '{part}'")
                continue
            path, names = named.groups()
            if not os.path.isfile(path):
                wrong.append(f"{PAGE}:{number}: there is no {path}")
                continue
            text = open(path, encoding="utf-8").read()
            wrong += [f"{PAGE}:{number}: {path} has no '{n.strip()}'" for n in names.split(", ") if n.strip() not in text]
    expected = [f"{k}{g}.{c}" for k, groups in COUNTS.items() for g, n in enumerate(groups, 1) for c in range(1, n + 1)]
    if seen != expected:
        wrong.append(f"{PAGE}: missing or misplaced: {sorted(set(expected) ^ set(seen)) or 'order'}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
