# SPDX-License-Identifier: Apache-2.0
"""Examples of the documents and of the modules do what they print; types and style are checked."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import castor
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "python"


def modules() -> list[str]:
    return ["castor", *(f"castor.{found.name}" for found in pkgutil.iter_modules(castor.__path__))]


@pytest.mark.parametrize("name", modules())
def test_modules(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_page() -> None:
    done = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False)
    assert done.failed == 0
    assert done.attempted >= 10


@pytest.mark.parametrize(
    "command", [["mypy", "--cache-dir=/dev/null"], ["ruff", "check", "--no-cache"]]
)
def test_types_and_style(command: list[str]) -> None:
    config = [f"--config={PACKAGE / 'pyproject.toml'}"] if command[0] == "ruff" else []
    subprocess.run(
        [sys.executable, "-m", *command, *config, "castor"], cwd=PACKAGE, check=True
    )
