#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README quotes is what there is: usage readme_test.py SOURCE_DIRECTORY TOY_ENGINE."""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)


def same_on_every_tier(text):
    """How many codes there are depends on the tier."""
    return re.sub(r"^codes: \d+ generated, \d+ hits$", "codes", text, flags=re.M)


def check(text, what):
    if same_on_every_tier(text) not in map(same_on_every_tier, BLOCKS):
        sys.exit(f"readme_test: the README does not quote {what} as it is:\n{text}")


check((SOURCE / "tools/examples/toy_engine.cpp").read_text(), "tools/examples/toy_engine.cpp")
check(subprocess.run([sys.argv[2]], stdout=subprocess.PIPE, text=True, check=True).stdout,
      "the output of toy_engine")
