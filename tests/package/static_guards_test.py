# SPDX-License-Identifier: Apache-2.0
"""The library has no static variable that is made under a lock: a child that is forked while another
thread makes one would wait for ever. Such variables have a guard, which is a symbol of the object
file. Usage: static_guards_test.py NM LIBRARY..."""
import subprocess
import sys


def guards_of(nm, library):
    listing = subprocess.run([nm, "-C", library], check=True, capture_output=True, text=True).stdout
    lines = listing.splitlines()
    if len(lines) < 10:
        sys.exit(f"{library}: found {len(lines)} symbols; expected those of a library")
    return [line.strip() for line in lines if "guard variable for" in line and "castor" in line]


def main():
    nm, *libraries = sys.argv[1:]
    found = [(library, guard) for library in libraries for guard in guards_of(nm, library)]
    for library, guard in found:
        print(f"{library}: {guard}\n  make it constinit, or a castor::jit::Published")
    sys.exit(1 if found or not libraries else 0)


main()
