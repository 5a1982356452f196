# SPDX-License-Identifier: Apache-2.0
"""The environment of tools/python/setup, with the package of the tree, for scripts of tools/."""

from __future__ import annotations

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "python-venv"
LIBRARY = ROOT / "build" / "release" / "python" / "libcastor.so"


def enter() -> None:
    """Goes on there: the script begins once more, unless it runs there already."""
    python = ENVIRONMENT / "bin" / "python"
    if pathlib.Path(sys.prefix) == ENVIRONMENT and "CASTOR_LIBRARY" in os.environ:
        return
    if not python.exists() or not LIBRARY.exists():
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: build/python-venv (tools/python/setup) and the"
                 " target castor_python of build/release are needed")
    variables = os.environ | {
        "CASTOR_LIBRARY": str(LIBRARY), "PYTHONPATH": str(ROOT / "runtime" / "python")}
    os.execve(python, [str(python), "-B", *sys.argv], variables)
