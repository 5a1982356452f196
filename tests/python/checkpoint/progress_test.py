# SPDX-License-Identifier: Apache-2.0
"""The progress bar: on a terminal alone, up to 100 %, and its line is ended whatever happens."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest
from castor.checkpoint import Options, convert_checkpoint, progress
from castor.checkpoint.cli import main
from castor.checkpoint.stream import ShardWriter
from checkpoint import files

BAR = re.compile(r"\[(#*) *\] +(\d+)% (\d+\.\d\d) GB, (\d+\.\d\d) GB/s")


class Terminal(io.StringIO):
    """What a user would see."""

    def isatty(self) -> bool:
        return True

    def bars(self) -> List[Tuple[int, int]]:
        """The length and the number of each bar; there is nothing else in the first line."""
        first = self.getvalue().partition("\n")[0]
        assert first.startswith("\r")
        found = [BAR.fullmatch(bar) for bar in first[1:].split("\r")]
        assert all(found)
        return [(len(one[1]), int(one[2])) for one in found if one]


def as_stderr(monkeypatch: pytest.MonkeyPatch, interval: float = 0.0) -> Terminal:
    """A terminal instead of stderr; each step is shown. No fixture: pytest has its own stderr."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "INTERVAL", interval)
    return made


@pytest.mark.parametrize("to", ["mxfp4", "nvfp4", "fp8-block", "int4-group"])
@pytest.mark.parametrize("shards", [1, 3])
def test_it_grows_to_the_end(
    to: str, shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There and back, from one file and several."""
    files.save_model(tmp_path / "in", 1, shards)
    for source, target, one in (("in", "q", to), ("q", "d", "bf16")):
        terminal = as_stderr(monkeypatch)
        convert_checkpoint(tmp_path / source, tmp_path / target, Options(one))
        bars = terminal.bars()
        assert len(bars) > 4
        assert bars == sorted(bars)
        assert bars[-1] == (progress.WIDTH, 100)
        assert terminal.getvalue().endswith("\n")


def test_it_is_shown_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at every step: a terminal takes longer than a block."""
    terminal = as_stderr(monkeypatch, progress.INTERVAL)
    with progress.Progress(1000) as shown:
        for _ in range(1000):
            shown.add(1)
    assert 2 <= len(terminal.bars()) < 500
    assert terminal.bars()[-1] == (progress.WIDTH, 100)


def test_what_was_done_before_is_not_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_stderr(monkeypatch)
    clock = iter([0.0, 1.0, 2.0, 2.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Progress(4_000_000_000) as shown:
        shown.skip(3_000_000_000)
        shown.add(1_000_000_000)
    last = terminal.getvalue().rstrip("\n").split("\r")[-1]
    assert last == "[" + "#" * 30 + "] 100% 4.00 GB, 0.50 GB/s"


def test_a_failure_is_told_on_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    terminal = as_stderr(monkeypatch)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(ShardWriter, "_transform", full)
    words = [str(tmp_path / "in"), str(tmp_path / "out"), "--to", "mxfp4", "--threads", "1"]
    assert main(words) == 1
    assert terminal.bars()[-1][1] < 100
    assert terminal.getvalue().split("\n")[1:] == ["castor-quantize: the disk is full", ""]


def command(source: Path, target: Path, stderr: int) -> subprocess.Popen[bytes]:
    """castor-quantize in a process of its own."""
    words = ["-m", "castor.checkpoint", str(source), str(target), "--to", "mxfp4"]
    return subprocess.Popen([sys.executable, *words], stderr=stderr)


def read_all(descriptor: int) -> str:
    """What a terminal is given until nobody has it open."""
    told = b""
    try:
        while block := os.read(descriptor, 4096):
            told += block
    except OSError:  # EIO: so ends a pseudoterminal in Linux
        pass
    return told.decode()


def test_on_a_terminal(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    ours, theirs = pty.openpty()
    process = command(tmp_path / "in", tmp_path / "out", theirs)
    os.close(theirs)
    told = read_all(ours)
    os.close(ours)
    assert process.wait() == 0
    first, *others = told.split("\r\n")
    assert BAR.fullmatch(first.split("\r")[-1])
    assert f"[{'#' * progress.WIDTH}] 100%" in first
    assert others[0].startswith("8 tensors converted")


def test_not_elsewhere(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    process = command(tmp_path / "in", tmp_path / "out", subprocess.PIPE)
    _, told = process.communicate()
    assert process.returncode == 0
    assert b"\r" not in told and b"GB/s" not in told
