# SPDX-License-Identifier: Apache-2.0
"""Runs pytest on tests of the Python package: run.py LIBRARY FILE... [option of pytest...].

In build/python-venv, which tools/python/setup makes: without it the test fails.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "python-venv" / "bin" / "python"


def main() -> None:
    """Becomes pytest."""
    if not PYTHON.exists():
        sys.exit("no build/python-venv: tools/python/setup makes it")
    library, *given = sys.argv[1:]
    paths = [str(ROOT / "runtime" / "python"), str(ROOT / "tests" / "python")]
    environment = os.environ | {
        "CASTOR_LIBRARY": str(Path(library).resolve()),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ["-q", "-p", "no:cacheprovider", "-o", "python_files=*_test.py"]
    options += [f"--rootdir={ROOT / 'tests' / 'python'}", "--import-mode=importlib"]
    os.chdir(ROOT / "tests" / "python")
    os.execve(PYTHON, [str(PYTHON), "-m", "pytest", *options, *given], environment)


if __name__ == "__main__":
    main()
