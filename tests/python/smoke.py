# SPDX-License-Identifier: Apache-2.0
"""What the installed package does with nothing but NumPy: run by wheel_test.py and tools/python/versions.

For any interpreter from CPython 3.9 on; nothing of the repository is imported.
"""

import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import threading

import castor
import numpy as np
from castor import ops


@castor.function
def scaled(x, w):
    """A traced function."""
    return ops.convert(x * w, "i8", overflow="saturate", rounding="nearest_even")


def convert_checkpoint() -> None:
    """The console script converts a checkpoint of one weight, and back."""
    entry = {"a.weight": {"dtype": "F32", "shape": [2, 32], "data_offsets": [0, 256]}}
    header = json.dumps(entry).encode()
    x = np.tile(np.float32([1, -6, 0.5, 4]), 16)
    script = os.path.join(sysconfig.get_path("scripts"), "castor-quantize")
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("in", "quantized", "out")]
        with open(names[0], "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + x.tobytes())
        for source, target, to in zip(names, names[1:], ("mxfp4", "f32")):
            command = [script, source, target, "--to", to]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        with open(names[2], "rb") as file:
            assert file.read()[-x.nbytes :] == x.tobytes()


def main() -> None:
    """Fails by an assertion, else prints what ran."""
    assert "ml_dtypes" not in sys.modules
    x = np.linspace(-2, 2, 1000, dtype=np.float32).reshape(10, 100)
    assert (castor.convert(x, "i32", rounding="down") == np.floor(x)).all()
    for _ in range(2):
        e4m3 = castor.convert(x[:, ::2], "float8_e4m3fn", overflow="saturate")
        assert isinstance(e4m3, castor.Tensor) and e4m3.nbytes == 500
        assert abs(castor.convert(e4m3, "f32") - x[:, ::2]).max() < 0.07
    assert castor.convert(np.int8([1, -2]), "i4").data.tolist() == [0xE1]
    assert castor.Tensor(b"\x80\x3f", "bf16", 1).numpy().tolist() == [1]
    y = castor.compile(
        "func @f(%x: f32[?n, ?m]) -> f64[?n, ?m] { %y = convert %x : f64 return %y }"
    )
    assert (y(x.T, threads=2) == x.T).all() and (y.interpret(x) == x).all() and y.check()
    assert scaled(np.float32([1.5, 100]), np.float32([2, 2])).tolist() == [3, 127]
    assert "endbr64" in scaled.asm("avx2") and "source0" in scaled.nest
    q, scale = castor.quantize_mx(x[:, :64], "mxfp4")
    assert abs(castor.dequantize_mx(q, scale, format="mxfp4") - x[:, :64]).max() < 0.5
    try:
        castor.compile("func @f")
    except castor.Error as error:
        assert error.line == 1
    else:
        raise AssertionError("a text that is none was compiled")
    failures = []

    def work() -> None:
        for _ in range(200):
            if not (castor.convert(x, "i16", rounding="up") == np.ceil(x)).all():
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    convert_checkpoint()
    is_free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        f"{platform.python_implementation()} {platform.python_version()}"
        f"{' free-threaded' if is_free_threaded else ''}, NumPy {np.__version__}:"
        f" castor {castor.info()['version']} on {castor.info()['isa']}"
    )


if __name__ == "__main__":
    main()
