# SPDX-License-Identifier: Apache-2.0
"""The command of a program that writes a golden table, or checks the one that is committed."""

import sys


def first_difference(found, wanted):
    """Line and texts of the first line that differs, or None."""
    for number, (was, expected) in enumerate(zip(found, wanted), 1):
        if was != expected:
            return f"line {number}: found {was}, expected {expected}"
    return None if len(found) == len(wanted) else f"found {len(found)} lines, expected {len(wanted)}"


def write_or_check(usage, program, rows):
    """`program OUTPUT.csv` or `program --check GOLDEN.csv`; `rows` are the table's lines."""
    check = sys.argv[1:2] == ["--check"]
    if len(sys.argv) != (3 if check else 2):
        sys.exit(usage)
    lines = [f"# Written by tests/oracle/{program}; do not edit.", *rows]
    if not check:
        with open(sys.argv[1], "w", encoding="ascii") as out:
            out.writelines(line + "\n" for line in lines)
        return
    with open(sys.argv[2], encoding="ascii") as golden:
        difference = first_difference(golden.read().splitlines(), lines)
    if difference:
        sys.exit(f"{sys.argv[2]}, {difference}")
