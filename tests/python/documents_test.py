# SPDX-License-Identifier: Apache-2.0
"""Examples of the documents and of the modules do what they print; types and style are checked."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import castor
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "python"


def modules() -> list[str]:
    return ["castor", *(f"castor.{found.name}" for found in pkgutil.iter_modules(castor.__path__))]


@pytest.mark.parametrize("name", modules())
def test_modules(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


IMPORTED = """
import sys
import castor
later = "ops", "_builder", "_value", "_trace", "_quantize", "_dlpack", "_dlpack_export"
assert not {f"castor.{name}" for name in later} & set(sys.modules)
assert set(castor.__all__) <= set(dir(castor))
for name in castor.__all__:
    assert getattr(castor, name) is not None
from castor import function, ops, quantize
assert castor.ops is ops is sys.modules["castor.ops"] and castor.function is function
assert castor.Value is ops.Value
try:
    castor.no_such_name
except AttributeError as error:
    assert str(error) == "module 'castor' has no attribute 'no_such_name'"
else:
    raise AssertionError
"""


def test_import_loads_what_conversions_need() -> None:
    subprocess.run([sys.executable, "-c", IMPORTED], check=True)


def test_page() -> None:
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    text = re.sub("^```.*$", "", text, flags=re.M)  # else a fence would end what is printed
    test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert runner.failures == 0
    assert len(re.findall(r"^\*\*\d+\. ", text, re.M)) == 10
    assert runner.tries >= 30


def test_first_screen() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```$", "\n".join(text.split("\n")[:25]), re.M | re.S)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["x"].tolist() == [0.3125, 448]
    assert names["y"].element.name == "f4e2m1" and names["scale"].shape == (8, 2)


@pytest.mark.parametrize(
    "command", [["mypy", "--cache-dir=/dev/null"], ["ruff", "check", "--no-cache"]]
)
def test_types_and_style(command: list[str]) -> None:
    config = [f"--config={PACKAGE / 'pyproject.toml'}"] if command[0] == "ruff" else []
    subprocess.run([sys.executable, "-m", *command, *config, "castor"], cwd=PACKAGE, check=True)


USER = """
import castor
import numpy as np

x = np.ones((8, 32), np.float32)
y, scale = castor.quantize_mx(x, "mxfp4")
y, scale, tensor_scale = castor.quantize_mx(x, "nvfp4")
name: str = "mxfp4"
both = castor.quantize_mx(x, name)
z = castor.convert(x, "f8e4m3", overflow="saturate")
"""


def test_types_of_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "user.py"]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
