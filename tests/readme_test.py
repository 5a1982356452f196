#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README quotes is what there is: usage readme_test.py SOURCE_DIRECTORY TOY_ENGINE."""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)


def check(text, what):
    if text not in BLOCKS:
        sys.exit(f"readme_test: the README does not quote {what} as it is:\n{text}")


check((SOURCE / "tools/examples/toy_engine.cpp").read_text(), "tools/examples/toy_engine.cpp")
check(subprocess.run([sys.argv[2]], stdout=subprocess.PIPE, text=True, check=True).stdout,
      "the output of toy_engine")
