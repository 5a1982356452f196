# SPDX-License-Identifier: Apache-2.0
"""A file that is interrupted goes on with the tensors that it does not have."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
import pytest
from castor.checkpoint import CheckpointError, Options, cli, convert_checkpoint, stream
from castor.checkpoint.journal import JOURNAL_NAME
from castor.checkpoint.stream import ShardWriter
from checkpoint import files

FORMATS = ["mxfp4", "nvfp4", "fp8-block", "int4-group", "bf16"]


def _weight(shape: Tuple[int, ...], seed: int) -> Any:
    return files.weight(files.random_weight(shape, seed, "F16"), "F16")


def save_file(path: Path, count: int = 6) -> None:
    """Linear weights of f16, an embedding and an empty tensor."""
    tensors: Any = {f"layers.{index}.weight": _weight((128, 256), index) for index in range(count)}
    tensors["embed.weight"] = _weight((64, 32), 99)
    tensors["layers.empty"] = ("F16", (0, 4), b"")
    files.save(path, tensors)


class Interruption:
    """Lets that many tasks go; the next one fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tasks: int) -> None:
        self.computed: List[str] = []
        convert = ShardWriter._convert

        def failing(writer: ShardWriter, task: stream.Task) -> None:
            if len(self.computed) == tasks:
                raise OSError("the disk is gone")
            self.computed.append(task.job.name)
            convert(writer, task)

        monkeypatch.setattr(ShardWriter, "_convert", failing)


def interrupted(
    monkeypatch: pytest.MonkeyPatch, source: Path, target: Path, options: Options, tasks: int
) -> List[str]:
    with monkeypatch.context() as patch:
        stopped = Interruption(patch, tasks)
        with pytest.raises(OSError, match="the disk is gone"):
            convert_checkpoint(source, target, options)
    return stopped.computed


def counted(monkeypatch: pytest.MonkeyPatch, source: Path, target: Path, options: Options) -> Any:
    with monkeypatch.context() as patch:
        going_on = Interruption(patch, -1)
        return convert_checkpoint(source, target, options), going_on.computed


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("tasks", [1, 3, 6])
def test_a_file_goes_on(
    to: str, tasks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(source)
    options = Options(to, errors=True)
    whole = convert_checkpoint(source, tmp_path / "whole.safetensors", options)
    first = interrupted(monkeypatch, source, target, options, tasks)
    assert not target.exists()
    assert len(first) == tasks
    journal = json.loads((tmp_path / "out.safetensors.part.json").read_bytes())
    assert set(journal["begun"]["tensors"]) == set(first)
    result, second = counted(monkeypatch, source, target, options)
    assert sorted(first + second) == sorted(set(first + second))
    assert f"{tasks} tensors of out.safetensors were finished before" in result.notes
    assert result.errors == whole.errors
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize("tasks", [4, 14])
def test_a_file_of_several_goes_on(
    tasks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save_model(tmp_path / "in", 6, 2)
    options = Options("mxfp4", errors=True)
    whole = convert_checkpoint(tmp_path / "in", tmp_path / "whole", options)
    first = interrupted(monkeypatch, tmp_path / "in", tmp_path / "out", options, tasks)
    assert (tmp_path / "out" / JOURNAL_NAME).exists()
    result, second = counted(monkeypatch, tmp_path / "in", tmp_path / "out", options)
    assert not set(first) & set(second)
    assert result.errors == whole.errors
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}


def test_what_does_not_fit_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    part, journal = tmp_path / "out.safetensors.part", tmp_path / "out.safetensors.part.json"
    save_file(source)
    options = Options("mxfp8")
    convert_checkpoint(source, tmp_path / "whole.safetensors", options)
    expected = (tmp_path / "whole.safetensors").read_bytes()

    def shorten() -> None:
        os.truncate(part, 1000)

    def replace() -> None:
        (tmp_path / "copy").write_bytes(part.read_bytes())
        os.replace(tmp_path / "copy", part)

    for change in (part.unlink, journal.unlink, shorten, replace, lambda: os.utime(source)):
        interrupted(monkeypatch, source, target, options, 3)
        change()
        result, computed = counted(monkeypatch, source, target, options)
        assert len(computed) == 7 and not [note for note in result.notes if "before" in note]
        assert target.read_bytes() == expected
        assert not list(tmp_path.glob("*.part*"))
        target.unlink()
    interrupted(monkeypatch, source, target, options, 3)
    with pytest.raises(CheckpointError, match="unfinished conversion with the options"):
        convert_checkpoint(source, target, Options("mxfp4"))
    journal.write_text(journal.read_text().replace('"tensors": {', '"tensors": {"x": {}, '))
    with pytest.raises(CheckpointError, match="is damaged"):
        convert_checkpoint(source, target, options)
    result, computed = counted(monkeypatch, source, target, Options("mxfp8", overwrite=True))
    assert len(computed) == 7 and target.read_bytes() == expected


def test_nothing_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(tmp_path / "in.safetensors")
    target = tmp_path / "out.safetensors"
    interrupted(monkeypatch, tmp_path / "in.safetensors", target, Options("mxfp4"), 0)
    assert [path.name for path in tmp_path.iterdir()] == ["in.safetensors"]


def test_fused_weights_in_another_file_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished file has a scale that depends on its partners in others."""
    folder = tmp_path / "in"
    folder.mkdir()
    names = [f"model-{shard}-of-00002.safetensors" for shard in ("00001", "00002")]
    weights = ["a.q_proj.weight", "a.k_proj.weight"]
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": dict(zip(weights, names))})
    )

    def save(shard: int, factor: float) -> None:
        x = files.random_weight((64, 64), shard) * np.float32(factor)
        files.save(folder / names[shard], {weights[shard]: files.weight(x)})

    save(0, 1)
    save(1, 1)
    options = Options("nvfp4")
    interrupted(monkeypatch, folder, tmp_path / "out", options, 1)
    assert (tmp_path / "out" / names[0]).exists()
    save(1, 64)
    result = convert_checkpoint(folder, tmp_path / "out", options)
    assert result.resumed == []
    found = files.load_all(tmp_path / "out")
    scales = {found[f"a.{one}_proj.weight_global_scale"][2] for one in "qk"}
    assert len(scales) == 1


KILLED = """
import os, signal, sys
from castor.checkpoint import cli, stream
def killed(writer, job):
    os.kill(os.getpid(), signal.SIGKILL)
stream.ShardWriter._finish = killed
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("change", ["truncated", "gone"])
def test_a_file_that_begins_again_and_is_killed(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there of what was finished before, though the file has its size."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    part = tmp_path / "out.safetensors.part"
    save_file(source)
    interrupted(monkeypatch, source, target, Options("mxfp8"), 3)
    if change == "truncated":
        os.truncate(part, 0)
    else:
        part.unlink()
    words = [sys.executable, "-c", KILLED, source, target, "--to", "mxfp8", "--threads", "1"]
    killed = subprocess.run(words, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    result = convert_checkpoint(source, target, Options("mxfp8"))
    assert not [note for note in result.notes if "before" in note]
    convert_checkpoint(source, tmp_path / "whole.safetensors", Options("mxfp8"))
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


PROGRAM = """
import sys
from castor.checkpoint import cli, stream
stream.SAVE_SECONDS = 0
sys.exit(cli.main(sys.argv[1:]))
"""


STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("kind", [signal.SIGKILL, *STOPS])
def test_a_killed_process_goes_on(kind: signal.Signals, tmp_path: Path) -> None:
    """What was saved before is not computed again; the file is that of one run."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    data = bytes(range(128)) * (1 << 13)
    files.save(source, {f"layers.{n}.weight": ("BF16", (512, 1024), data) for n in range(64)})
    words = [sys.executable, "-c", PROGRAM, source, target, "--to", "mxfp4", "--threads", "2"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "out.safetensors.part.json"
    while process.poll() is None and not journal.exists():
        time.sleep(0.001)
    process.send_signal(kind)
    process.communicate()
    if process.returncode == 0:
        pytest.skip("the conversion was faster than the signal")
    assert journal.exists() and (tmp_path / "out.safetensors.part").exists()
    second = subprocess.run(words, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert "tensors of out.safetensors were finished before" in second.stderr
    convert_checkpoint(source, tmp_path / "whole.safetensors", Options("mxfp4"))
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert not list(tmp_path.glob("*.part*"))


PAUSED = """
import sys, time
from castor.checkpoint import cli, stream
convert = stream.ShardWriter._convert
def paused(writer, task):
    if writer._done:
        print("begun", flush=True)
        time.sleep(0.1)
    convert(writer, task)
stream.ShardWriter._convert = paused
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", STOPS)
def test_a_stopped_process_saves(kind: signal.Signals, tmp_path: Path) -> None:
    """The journal has what was finished, long before it would have been saved in any case."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(source, 50)
    words = [sys.executable, "-c", PAUSED, source, target, "--to", "mxfp4", "--threads", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(kind)
        process.send_signal(kind if kind != signal.SIGINT else signal.SIGCONT)
        _, told = process.communicate()
    assert (process.returncode, told) == (128 + kind, "castor-quantize: interrupted\n")
    journal = json.loads((tmp_path / "out.safetensors.part.json").read_bytes())
    assert 1 <= len(journal["begun"]["tensors"]) < 50


def test_an_ignored_signal_stays_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As nohup has it."""
    save_file(tmp_path / "in.safetensors")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    convert = ShardWriter._convert

    def hung_up(writer: ShardWriter, task: stream.Task) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        convert(writer, task)

    monkeypatch.setattr(ShardWriter, "_convert", hung_up)
    words = [str(tmp_path / name) for name in ("in.safetensors", "out.safetensors")]
    try:
        assert cli.main([*words, "--to", "mxfp4", "--threads", "1"]) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


FULL = """
import resource, sys
from castor.checkpoint import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
sys.exit(cli.main(sys.argv[1:]))
"""


def test_too_little_room_is_told_first(tmp_path: Path) -> None:
    """The output's room is reserved before anything is computed; nothing is left."""
    source = tmp_path / "in.safetensors"
    files.save(source, {"a.weight": ("BF16", (4096, 1024), bytes(1 << 23))})
    words = [sys.executable, "-c", FULL, source, tmp_path / "out.safetensors", "--to", "mxfp8"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"File too large: 43[0-9]{5} bytes for the output", done.stderr), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.safetensors"]
