# SPDX-License-Identifier: Apache-2.0
"""The wheel: what it contains, and that it works in empty environments with nothing but NumPy.

tools/python/setup makes those of Debian's CPython and PyPy; without them the test fails.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build" / "python-empty"


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel of build/release."""
    built = subprocess.run(
        [ROOT / "tools" / "wheel"], check=True, capture_output=True, text=True
    ).stdout
    return ROOT / built.partition(":")[0]


def plain_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CASTOR_LIBRARY")}


def test_contents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = file.read("castor-0.1.0.dist-info/METADATA").decode()
        with tempfile.TemporaryDirectory() as folder:
            library = file.extract("castor/libcastor.so", folder)
            needed = subprocess.run(
                ["readelf", "--dynamic", library], check=True, capture_output=True, text=True
            ).stdout
            exported = subprocess.run(
                ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
            ).stdout
        licenses = {
            name.rpartition("/")[2]: file.read(name).decode()
            for name in names
            if "dist-info/licenses/" in name and not name.endswith("/")
        }
    assert "castor/py.typed" in names
    # What the library has in it and beside it, with the terms that go with copies.
    assert set(licenses) == {"LICENSE", "zydis", "zycore", "fmt", "xbyak"}
    mit = "The above copyright notice and this permission notice"
    for name, holder, terms in (
        ("zydis", "Florian Bernd", mit),
        ("zycore", "Florian Bernd", mit),
        ("fmt", "Victor Zverovich", mit),
        ("xbyak", "MITSUNARI Shigeo", "Redistributions in binary form must reproduce"),
    ):
        assert holder in licenses[name] and terms in licenses[name]
    assert not [name for name in names if "__pycache__" in name or "/native/" in name]
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist: numpy" in metadata
    assert "libstdc++" not in needed and "libfmt" not in needed and "libtbb" not in needed
    symbols = [line.split()[-1] for line in exported.splitlines()]
    assert "castor_convert" in symbols
    assert [name for name in symbols if not name.startswith("castor_")] == []


def test_no_wheel_without_licenses(tmp_path: Path) -> None:
    """A machine that keeps them elsewhere is told so, instead of making a wheel without them."""
    for library in ("zydis", "zycore"):
        (tmp_path / f"lib{library}-dev").mkdir()
        (tmp_path / f"lib{library}-dev" / "copyright").touch()
    words = ["cmake", "-S", ROOT / "runtime" / "python", "-B", tmp_path / "build"]
    words += [f"-DCASTOR_LICENSES={tmp_path}", f"-DCASTOR_PREBUILT_LIBRARY={__file__}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "libfmt-dev/copyright: the wheel has fmt in it" in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", ["cpython", "pypy"])
def test_works_with_nothing_but_numpy(wheel: Path, name: str) -> None:
    python = ENVIRONMENTS / name / "bin" / "python"
    assert python.exists(), "tools/python/setup makes build/python-empty"
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [python, *install, "--no-index", "--force-reinstall", wheel],
        check=True,
        env=plain_environment(),
    )
    done = subprocess.run(
        [python, ROOT / "tests" / "python" / "smoke.py"],
        check=False,
        env=plain_environment(),
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith({"cpython": "CPython", "pypy": "PyPy"}[name])
