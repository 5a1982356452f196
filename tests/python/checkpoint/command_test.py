# SPDX-License-Identifier: Apache-2.0
"""The command: selection, several files, resuming, configs, reports, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest
from castor.checkpoint import CheckpointError, Options, cli, convert, convert_checkpoint, target
from castor.checkpoint.cli import main
from castor.checkpoint.journal import JOURNAL_NAME, VERSION, Journal
from castor.checkpoint.stream import ShardWriter
from checkpoint import files, reference

FORMATS = ("mxfp4", "mxfp8", "nvfp4", "fp8-block", "int8-channel", "int4-group")


def contents(directory: Path) -> dict[str, bytes]:
    """All files."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_linear_weights_are_converted_by_default(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4"))
    before, after = files.load_all(tmp_path / "in"), files.load_all(tmp_path / "out")
    converted = {name for name in before if name not in after}
    assert converted == {
        f"model.layers.{layer}.{name}.weight"
        for layer in range(2)
        for name in ("self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "mlp.down_proj")
    }
    assert all(after[name] == before[name] for name in before if name not in converted)


@pytest.mark.parametrize(
    ("include", "exclude", "wanted"),
    [
        (
            [],
            ["*.k_proj.*", "*layers.1*"],
            ["0.mlp.down_proj", "0.mlp.up_proj", "0.self_attn.q_proj"],
        ),
        (["*.q_proj.weight"], [], ["0.self_attn.q_proj", "1.self_attn.q_proj"]),
        (["*layers.0*", "lm_head*"], ["*proj*"], ["0.mlp.gate", "lm_head"]),
    ],
)
def test_patterns(
    include: List[str], exclude: List[str], wanted: List[str], tmp_path: Path
) -> None:
    files.save_model(tmp_path / "in", 2, 1)
    options = Options("int8-channel", include=include, exclude=exclude)
    convert_checkpoint(tmp_path / "in", tmp_path / "out", options)
    tensors = files.load_all(tmp_path / "out")
    found = sorted(
        name[: -len(".weight_scale")].replace("model.layers.", "")
        for name in tensors
        if name.endswith("weight_scale")
    )
    assert found == wanted
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    ignored = config["quantization_config"]["ignore"]
    linear = {
        name[: -len(".weight")]
        for name, (_, shape, _) in files.model(2).items()
        if name.endswith(".weight") and len(shape) == 2
    }
    quantized = {name[: -len(".weight_scale")] for name in tensors if name.endswith("_scale")}
    assert set(ignored) == linear - quantized


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("shards", [1, 3])
def test_there_and_back(to: str, shards: int, tmp_path: Path) -> None:
    """Names, shapes and dtypes are again those of the input; a second time changes nothing."""
    files.save_model(tmp_path / "in", 3, shards)
    group = 32 if to == "int4-group" else None
    convert_checkpoint(tmp_path / "in", tmp_path / "q", Options(to, group=group, threads=3))
    convert_checkpoint(tmp_path / "q", tmp_path / "d", Options("bf16", threads=3))
    before, after = files.load_all(tmp_path / "in"), files.load_all(tmp_path / "d")
    assert {name: one[:2] for name, one in before.items()} == {
        name: one[:2] for name, one in after.items()
    }
    for name, (_, shape, data) in before.items():
        if name + "_scale" not in files.load_all(tmp_path / "q"):
            continue
        ours, theirs = (reference.loaded(one, "BF16", shape) for one in (data, after[name][2]))
        assert np.abs(ours - theirs).max() <= 0.25 * np.abs(ours).max()
    assert json.loads((tmp_path / "d" / "config.json").read_text()) == {
        "model_type": "llama",
        "dtype": "bfloat16",
    }
    assert (tmp_path / "q" / "tokenizer.json").read_text() == "{}"
    if shards > 1:
        for directory in ("q", "d"):
            index = json.loads((tmp_path / directory / "model.safetensors.index.json").read_text())
            tensors = files.load_all(tmp_path / directory)
            assert set(index["weight_map"]) == set(tensors)
            assert index["metadata"] == {
                "total_size": sum(len(data) for _, _, data in tensors.values()),
                "note": "kept",
            }
            for name, file in index["weight_map"].items():
                assert name in files.load(tmp_path / directory / file)


def test_parts_in_different_files(tmp_path: Path) -> None:
    """Scales may be stored elsewhere than their elements."""
    (tmp_path / "q").mkdir()
    x = files.random_weight((64, 64), 4)
    encoded = reference.encode(x, "mxfp8", "even_round", 0, "BF16")
    weight_map = {}
    for suffix, (dtype, shape, data) in encoded.tensors.items():
        name = f"model-{suffix}.safetensors"
        weight_map["a." + suffix] = name
        files.save(tmp_path / "q" / name, {"a." + suffix: (dtype, tuple(shape), data)})
    index = tmp_path / "q" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    convert_checkpoint(index, tmp_path / "d", Options("f32"))
    assert files.load_all(tmp_path / "d")["a.weight"][2] == reference.stored(encoded.decoded, "F32")


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_files(threads: int, tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 5, 2)
    for to in FORMATS:
        convert_checkpoint(tmp_path / "in", tmp_path / f"1 {to}", Options(to))
        convert_checkpoint(tmp_path / "in", tmp_path / f"n {to}", Options(to, threads=threads))
        assert contents(tmp_path / f"1 {to}") == contents(tmp_path / f"n {to}")


def test_a_failure_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished files are kept as they are, the report has their errors, nothing else is left."""
    files.save_model(tmp_path / "in", 6, 4)
    options = Options("nvfp4", errors=True)
    whole = convert_checkpoint(tmp_path / "in", tmp_path / "whole", options)
    written: List[str] = []
    write = ShardWriter.write

    def failing(self: ShardWriter) -> Any:
        if len(written) == 2:
            raise OSError("no space left on the device")
        written.append(self._plan.name)
        return write(self)

    monkeypatch.setattr(ShardWriter, "write", failing)
    with pytest.raises(OSError, match="no space left"):
        convert_checkpoint(tmp_path / "in", tmp_path / "out", options)
    monkeypatch.undo()
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted([JOURNAL_NAME, *written])
    times = {name: (out / name).stat().st_mtime_ns for name in written}
    with pytest.raises(CheckpointError, match="unfinished conversion with the options"):
        convert_checkpoint(tmp_path / "in", out, Options("mxfp4"))
    result = convert_checkpoint(tmp_path / "in", out, options)
    assert result.resumed == written
    assert result.errors == whole.errors
    assert {name: (out / name).stat().st_mtime_ns for name in written} == times
    assert contents(out) == contents(tmp_path / "whole")


def test_a_changed_input_is_converted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save_model(tmp_path / "in", 6, 2)
    monkeypatch.setattr(convert, "_copy_others", lambda *_: (_ for _ in ()).throw(OSError("stop")))
    with pytest.raises(OSError, match="stop"):
        convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4"))
    monkeypatch.undo()
    first = sorted((tmp_path / "in").glob("*.safetensors"))[0]
    os.utime(first, ns=(1, 1))
    result = convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4"))
    assert result.resumed == [sorted((tmp_path / "in").glob("*.safetensors"))[1].name]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 6, 2)
    (tmp_path / "out").mkdir()
    journal = tmp_path / "out" / JOURNAL_NAME
    options = {"to": "mxfp4", "rule": "even_round", "group": 0}
    options.update({"include": [], "exclude": [], "errors": False})
    for damaged in ("[]", '{"x": 1}', '{"x": {}}', '{"x": {"errors": [{}]}}', "1"):
        journal.write_text(
            json.dumps({"version": VERSION, "options": options, "files": json.loads(damaged)})
        )
        refused(tmp_path / "in", tmp_path / "out", "mxfp4", "is damaged")
    journal.write_text(json.dumps({"version": VERSION - 1, "options": options, "files": {}}))
    refused(tmp_path / "in", tmp_path / "out", "mxfp4", "of another version of castor-quantize")
    journal.write_text("{")
    refused(tmp_path / "in", tmp_path / "out", "mxfp4", "expected JSON")
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4", overwrite=True))


def test_included_casts_take_any_shape(tmp_path: Path) -> None:
    shapes = {"a.weight": (3, 5), "b": (7,), "c.conv": (2, 3, 4), "norm": (), "empty": (0, 4)}
    x = {
        name: files.random_weight((64,), 9, "F32")[: int(np.prod(shape))]
        for name, shape in shapes.items()
    }
    tensors = {
        name: ("F32", shape, reference.stored(x[name], "F32")) for name, shape in shapes.items()
    }
    files.save(tmp_path / "in.safetensors", {**tensors, "ids": ("I64", (2,), bytes(16))})
    source = tmp_path / "in.safetensors"
    convert_checkpoint(source, tmp_path / "all.safetensors", Options("bf16", include=["*"]))
    found = files.load(tmp_path / "all.safetensors")
    assert found.pop("ids") == ("I64", (2,), bytes(16))
    assert found == {
        name: ("BF16", shape, reference.stored(x[name], "BF16")) for name, shape in shapes.items()
    }
    convert_checkpoint(source, tmp_path / "linear.safetensors", Options("bf16"))
    found = files.load(tmp_path / "linear.safetensors")
    assert [name for name, one in found.items() if one[0] == "BF16"] == ["a.weight"]


def large_model(directory: Path, shards: int, megabytes: int) -> None:
    """Files of random bytes, made quickly."""
    directory.mkdir()
    rows = megabytes << 9
    block = np.random.default_rng(1).integers(0, 1 << 16, 1 << 19, dtype=np.uint16) & 0xBFFF
    data = block.astype("<u2").tobytes() * megabytes
    weight_map = {}
    for shard in range(shards):
        name = f"model-{shard}.safetensors"
        files.save(directory / name, {f"layers.{shard}.weight": ("BF16", (rows, 1024), data)})
        weight_map[f"layers.{shard}.weight"] = name
    index = {"weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


def command(*words: Any) -> subprocess.Popen[str]:
    """castor-quantize in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "castor.checkpoint", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_an_interruption_is_resumed(kind: signal.Signals, tmp_path: Path) -> None:
    """Whatever it hits: the second run completes the first one's files."""
    large_model(tmp_path / "in", 6, 8)
    words = (tmp_path / "in", tmp_path / "out", "--to", "fp8-block", "--threads", 1, "--report")
    process = command(*words)
    while process.poll() is None:
        if len(list((tmp_path / "out").glob("*.safetensors"))) >= 2:
            process.send_signal(kind)
            break
        time.sleep(0.001)
    _, told = process.communicate()
    out = tmp_path / "out"
    if process.returncode == 0:
        pytest.skip("the conversion was faster than the signal")
    if kind == signal.SIGINT:
        assert (process.returncode, told) == (130, "castor-quantize: interrupted\n")
        begun = json.loads((out / JOURNAL_NAME).read_bytes()).get("begun")
        # The signal may also meet a whole file that does not have its name yet.
        left = len(list(out.glob("*.part")))
        assert (1 if begun else 0) <= left <= 1
    assert (out / JOURNAL_NAME).exists()
    assert not (out / "config.json").exists()
    second = command(*words)
    _, told = second.communicate()
    assert second.returncode == 0, told
    assert "finished before: model-0.safetensors" in told
    convert_checkpoint(tmp_path / "in", tmp_path / "whole", Options("fp8-block", threads=2))
    assert contents(out) == contents(tmp_path / "whole")


MEMORY = """
import sys, threading, time
from castor.checkpoint.cli import main

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1])

main([sys.argv[1], sys.argv[2] + "/warm", "--to", sys.argv[4]])
before = status("RssAnon"), status("RssFile")
most = [0, 0]
done = threading.Event()
def watch():
    while not done.wait(0.002):
        most[:] = max(most[0], status("RssAnon")), max(most[1], status("RssFile"))
watcher = threading.Thread(target=watch)
watcher.start()
assert main([sys.argv[3], sys.argv[2] + "/out", "--to", sys.argv[4], "--threads", "2"]) == 0
done.set()
watcher.join()
print(most[0] - before[0], most[1] - before[1])
"""


@pytest.mark.parametrize("to", ["mxfp4", "fp8-block", "nvfp4"])
def test_memory_does_not_grow_with_the_file(to: str, tmp_path: Path) -> None:
    """320 MiB in ten tensors: buffers take a few MiB, mapped pages at most some tensors."""
    large_model(tmp_path / "small", 1, 4)
    (tmp_path / "in").mkdir()
    data = np.random.default_rng(1).integers(0, 1 << 15, 1 << 24, dtype=np.uint16).tobytes()
    files.save(
        tmp_path / "in" / "model.safetensors",
        {f"layers.{layer}.weight": ("BF16", (1 << 13, 1 << 11), data) for layer in range(10)},
    )
    del data
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            MEMORY,
            *map(str, (tmp_path / "small", tmp_path, tmp_path / "in", to)),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    anonymous, mapped = map(int, found.stdout.split())
    assert anonymous < 16 << 10
    assert mapped < (300 << 10 if to == "nvfp4" else 100 << 10)


def test_a_report_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before anything is converted; later its contents are printed."""
    files.save_model(tmp_path / "in", 8, 2)
    words = [str(tmp_path / "in"), str(tmp_path / "out"), "--to", "mxfp4", "--report-json"]
    for wrong in (tmp_path / "no" / "r.json", tmp_path):
        assert main([*words, str(wrong)]) == 1
        assert "expected the name of a file, in a folder" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    assert main([*words, str(tmp_path / "out" / "r.json")]) == 0  # where there is no folder yet
    assert len(json.loads((tmp_path / "out" / "r.json").read_text())["tensors"]) == 8
    (tmp_path / "link.json").symlink_to("target.json")
    assert main([*words, str(tmp_path / "link.json"), "--overwrite"]) == 0
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "target.json").exists()

    def full(path: Path, data: bytes) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(cli, "write_file", full)
    capsys.readouterr()
    assert main([*words, str(tmp_path / "r.json"), "--overwrite"]) == 1
    captured = capsys.readouterr()
    assert "no space left" in captured.err and "8 tensors converted" in captured.err
    assert len(captured.out.splitlines()) == 9


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.save_model(tmp_path / "in", 8, 2)
    told = tmp_path / "report.json"
    words = [tmp_path / "in", tmp_path / "out", "--to", "mxfp4", "--report", "--report-json", told]
    assert main(list(map(str, words))) == 0
    captured = capsys.readouterr()
    rows = captured.out.splitlines()
    assert rows[0].split() == [
        "tensor",
        "elements",
        "max",
        "error",
        "rel.",
        "RMS",
        "saturated",
        "not",
        "finite",
    ]
    report = json.loads(told.read_text())
    assert len(rows) == 1 + len(report["tensors"]) == 9
    assert report["kept"]["lm_head.weight"] == "an embedding, norm, output layer or router"
    assert "8 tensors converted, 9 kept" in captured.err
    assert "\r" not in captured.err  # no bar: this is not a terminal


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--to", "mxfp4", "--rule", "nvfp4"],
            "--rule nvfp4, expected one of even_round, ocp_floor",
        ),
        (["--to", "int4-group", "--group-size", "12"], "expected a positive multiple of 8"),
        (["--to", "mxfp4", "--threads", "0"], "--threads 0, expected 1 to 1024"),
        (["--to", "mxfp4", "--threads", "100000"], "--threads 100000, expected 1 to 1024"),
        (["--to", "mxfp4", "--group-size", "32"], "--group-size 32: mxfp4 has no groups"),
        (["--to", "bf16", "--group-size", "128"], "--group-size 128: bf16 has no groups"),
        (["--to", "mxfp4", "--include", "nothing"], "no tensor to convert to mxfp4 (17: not incl"),
        (["--to", "bf16"], "no tensor to convert to bf16"),
        (["--to", "int4-group", "--group-size", "1024"], "columns are not whole blocks of 1024"),
    ],
)
def test_wrong_options(
    words: List[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files.save_model(tmp_path / "in", 9, 1)
    assert main([str(tmp_path / "in"), str(tmp_path / "out"), *words]) == 1
    assert message in capsys.readouterr().err


def refused(source: Path, target: Path, to: str, message: str, **more: Any) -> None:
    """By message, with nothing written."""
    before = contents(target) if target.is_dir() else None
    with pytest.raises(CheckpointError, match=message):
        convert_checkpoint(source, target, Options(to, **more))
    assert (contents(target) if target.is_dir() else None) == before


def test_wrong_checkpoints(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 10, 2)
    source, out = tmp_path / "in", tmp_path / "out"
    first, second = sorted(source.glob("*.safetensors"))
    index = source / "model.safetensors.index.json"
    good = index.read_text()
    weights = json.loads(good)["weight_map"]
    for text, message in (
        ("[]", "found a list, expected an object"),
        ('{"weight_map": {"a": 1}}', "expected the name of a file"),
        ('{"weight_map": {"a": "../x.safetensors"}}', "in the same directory"),
        ('{"weight_map": {}}', "expected an object weight_map"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ("[" * 100_000, "nest too deep"),
        ("{", "expected JSON"),
        (json.dumps({"weight_map": {**weights, "more": first.name}}), "'more' is in None, but in"),
        (json.dumps({"weight_map": dict.fromkeys(weights, first.name)}), "by the index"),
        (json.dumps({"weight_map": {"a": "none.safetensors"}}), "no such file"),
    ):
        index.write_text(text)
        refused(source, out, "mxfp4", message)
    index.write_text(good)
    index.rename(tmp_path / "index")
    refused(source, out, "mxfp4", "and 2 files")
    (tmp_path / "index").rename(index)
    tensors = files.load(first)
    files.save(second, {**files.load(second), next(iter(tensors)): next(iter(tensors.values()))})
    refused(source, out, "mxfp4", "expected it once")


def test_what_exists_is_not_replaced(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 11, 1)
    source, out = tmp_path / "in", tmp_path / "out"
    refused(source, source, "mxfp4", "is the input's directory")
    convert_checkpoint(source, out, Options("mxfp4"))
    refused(source, out, "mxfp8", "exists")
    refused(out, tmp_path / "again", "mxfp8", "is quantized already")
    refused(out, tmp_path / "again", "bf16", "do not go with quantized", include=["*"])
    refused(out, tmp_path / "again", "bf16", "dequantizing has none", errors=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "tokenizer.json").write_text("mine")
    (other / "config.json").symlink_to(out / "config.json")
    refused(source, other, "mxfp4", r"other there exists already: config.json, tokenizer.json \(")
    (other / "config.json").unlink()
    (other / "notes").write_text("mine")
    convert_checkpoint(source, other, Options("mxfp4", overwrite=True))
    assert (other / "notes").read_text() == "mine"
    convert_checkpoint(source, out, Options("mxfp8", overwrite=True))
    assert "mxfp8" in (out / "config.json").read_text()
    file = source / "model.safetensors"
    refused(file, file, "mxfp4", "is the input")
    refused(file, out / "model.safetensors", "mxfp4", "exists")
    refused(file, out, "mxfp4", "is a directory")
    result = convert_checkpoint(file, source / "q.safetensors", Options("mxfp4"))
    assert "is left as it is" in result.notes[0]
    assert "quantization_config" not in (source / "config.json").read_text()


def test_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one sees the lock of the first."""
    files.save_model(tmp_path / "in", 12, 1)
    source, target = tmp_path / "in" / "model.safetensors", tmp_path / "q.safetensors"
    write = ShardWriter.write

    def nested(self: ShardWriter) -> Any:
        monkeypatch.undo()
        with pytest.raises(CheckpointError, match="another process is writing it"):
            convert_checkpoint(source, target, Options("mxfp4"))
        return write(self)

    monkeypatch.setattr(ShardWriter, "write", nested)
    convert_checkpoint(source, target, Options("mxfp4"))
    assert files.load(target)


@pytest.mark.parametrize("options", [Options("mxfp4"), Options("mxfp8", overwrite=True)])
def test_two_at_once_in_a_directory(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is refused between two files too, and leaves the first one's journal."""
    files.save_model(tmp_path / "in", 12, 3)
    source, out = tmp_path / "in", tmp_path / "out"
    for owner, name in ((Journal, "write"), (convert, "_input_bytes")):
        called = getattr(owner, name)

        def nested(*arguments: Any, called: Any = called) -> Any:
            before = contents(out)
            monkeypatch.undo()
            with pytest.raises(CheckpointError, match="out: another process is writing it"):
                convert_checkpoint(source, out, options)
            assert contents(out) == before
            return called(*arguments)

        monkeypatch.setattr(owner, name, nested)
        convert_checkpoint(source, out, Options("mxfp4", overwrite=True))
        assert len(files.load_all(out)) > 17


def test_a_file_that_another_process_publishes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the other's whole file then, which was opened while it had its temporary name."""
    part = tmp_path / "a.part"
    part.write_text("whole")
    lock = target._lock

    def late(*arguments: Any) -> None:
        part.rename(tmp_path / "a")
        lock(*arguments)

    monkeypatch.setattr(target, "_lock", late)
    unfinished = target.unfinished_file(tmp_path / "a")
    with pytest.raises(CheckpointError, match="another process has written it"):
        unfinished.__enter__()
    assert (tmp_path / "a").read_text() == "whole"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight_zero_point": ("I32", (1,), b"\0" * 4)}, "weight_zero_point I32"),
        ({"weight_scale": ("F32", (8, 2), b"\0" * 64)}, "expected one of the formats"),
        ({"weight_scale": ("U8", (4, 2), b"\0" * 8)}, "expected one of the formats"),
        ({"weight_scale": ("U8", (8, 1), b"\0" * 8)}, "expected one of the formats"),
    ],
)
def test_unknown_quantized_tensors(change: Any, message: str, tmp_path: Path) -> None:
    parts = {
        "weight": ("F8_E4M3", (8, 64), bytes(8 * 64)),
        "weight_scale": ("U8", (8, 2), bytes(16)),
    }
    tensors = {"a." + key: value for key, value in {**parts, **change}.items()}
    files.save(tmp_path / "in.safetensors", tensors)
    refused(tmp_path / "in.safetensors", tmp_path / "out.safetensors", "bf16", message)


def test_a_wrong_shape(tmp_path: Path) -> None:
    x = files.random_weight((8, 128), 1)
    encoded = reference.encode(x, "int4-group", "full_range", 128, "BF16").tensors
    encoded["weight_shape"] = ("I64", [2], np.array([8, 120], "<i8").tobytes())
    files.save(
        tmp_path / "in.safetensors",
        {"a." + key: (one[0], tuple(one[1]), one[2]) for key, one in encoded.items()},
    )
    message = r"weight_shape is \[8, 120\], expected \[8, 128\]"
    refused(tmp_path / "in.safetensors", tmp_path / "out.safetensors", "bf16", message)
