# SPDX-License-Identifier: Apache-2.0
"""tools/peers with the peers of build/ort-venv: peers_smoke.py SOURCE LIBRARY.

It runs the short form, and judges no speed: that peers are found, that what must have castor's bits
has them, that a wrong bit is seen, and that the report hides no figure. Without the environment,
which tools/ort/setup makes, it fails.
"""
import os
import pathlib
import re
import subprocess
import sys

PEERS = {"NumPy", "ml_dtypes", "ONNX Runtime"}
FAMILIES = ["conversions", "elementwise", "conv_integer", "matmul_integer",
            "dynamic_quantization", "blocks"]


def check(condition, message):
    if not condition:
        sys.exit(f"peers_smoke: {message}")


def has_vnni():
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1)
    return not {"avx_vnni", "avx512_vnni"}.isdisjoint(flags.split())


def run(source, library, *words):
    """The output of tools/peers, which must succeed."""
    command = [sys.executable, "-B", str(source / "tools" / "peers"), "--environment",
               str(source / "build" / "ort-venv"), "--library", library, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    check(done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def check_output(text):
    for part in ("## Where a peer is faster", "## Summary", "## Conversions", "## Elementwise",
                 "## ConvInteger", "## MatMulInteger", "## Dynamic quantization",
                 "## Block formats", "## Compile time"):
        check(part in text, f"no '{part}' in\n{text}")
    summary = text[text.index("## Summary"):text.index("## Conversions")]
    found = {(cells[1], cells[3]): cells for line in summary.splitlines()
             if len(cells := [cell.strip() for cell in line.split("|")]) > 9}
    check(("conversions", "NumPy") in found, f"no conversions of NumPy in\n{summary}")
    check(found["conversions", "NumPy"][9] == "0", f"NumPy's conversions differ:\n{summary}")
    check(found["MatMulInteger", "NumPy"][9] == "0", f"NumPy's products differ:\n{summary}")
    if has_vnni():  # without it, ONNX Runtime saturates pairs of products of u8 by i8
        check(found["ConvInteger", "ONNX Runtime"][9] == "0", f"ConvInteger differs:\n{summary}")
    counted = int(re.search(r"^(\d+) of \d+ figures", text, re.M).group(1))
    listed = text[text.index("## Where"):text.index("## Summary")]
    numbers = [int(cells[4]) for line in listed.splitlines()
               if len(cells := [cell.strip() for cell in line.split("|")]) > 5
               and cells[4].isdigit()]
    check(sum(numbers) == counted, f"{counted} figures are lost, {numbers} listed")


CHECKS = """
import json, pathlib, sys, tempfile
import numpy as np
from comparison import checks, tasks
from comparison.report import losses, markdown, ranking, reasons, rows

x = tasks.Tensor.of(np.float32([1, 2, 3]))
y = tasks.Tensor.of(np.float32([1, 2.5, -0.0]))
found = checks.difference([y.data], [x.data], (tasks.Spec("f32", (3,)),))
assert found == {"elements": 2, "of": 3, "apart": 3.0}, found
z = tasks.Tensor.of(np.float32([0.0]))
n = tasks.Tensor.of(np.float32([-0.0]))
found = checks.difference([n.data], [z.data], (tasks.Spec("f32", (1,)),))
assert found == {"elements": 0, "of": 1, "apart": 0.0}, found
assert checks.difference([z.data], [z.data], (tasks.Spec("f32", (1,)),)) is None

def run_with(seconds):
    peers = {"P": {"best": seconds, "median": seconds, "form": "", "differs": None, "note": ""},
             "Q": {"lacks": "no u1"}, "R": {"failed": "Sad: it fell"}}
    record = {"family": "conversions", "name": "u8 to u1", "threads": 1, "work": 1, "unit": "GB/s",
              "castor": {"": {"best": 1.0, "median": 1.0}}, "peers": peers}
    part = {"versions": {"P": "1", "Q": "2", "R": "3"}, "missing": {}, "records": [record]}
    return rows.merged({"command": "x"}, [part])

slow, fast = run_with(2.0), run_with(0.5)
assert losses.losses(slow) == []
lost, = losses.losses(fast)
assert lost.reason == reasons.UNEXPLAINED and lost.figure.ratio == 0.5
text = markdown.markdown(fast, [], None)
assert "not explained yet" in text and "u8 to u1 0.50" in text and "R failed: Sad" in text, text
assert ranking.agreement(slow, fast).turned[1] and not ranking.agreement(slow, slow).turned[1]
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "peers.json"
    rows.write(fast, path)
    assert rows.read(path) == fast
print("checked")
"""


def main():
    source, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    python = source / "build" / "ort-venv" / "bin" / "python"
    check(python.exists(), "no build/ort-venv: tools/ort/setup makes it")
    text = run(source, library, "--quick", "--threads", "1", "--families", *FAMILIES,
               "compile_time")
    check_output(text)
    paths = [str(source / "runtime" / "python"), str(source / "tools")]
    variables = os.environ | {"CASTOR_LIBRARY": library, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([str(python), "-B", "-c", CHECKS], env=variables, text=True,
                          capture_output=True, check=False)
    check(done.stdout == "checked\n", f"checks of the report: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
