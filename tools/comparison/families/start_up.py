# SPDX-License-Identifier: Apache-2.0
"""How large the shared libraries are, how long an import takes, and creating castor's Runtime."""
from __future__ import annotations

import importlib.util
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from ..environment import LIBRARY
from ..peers.base import Peer

FAMILY = "start-up"
PROCESSES, QUICK_PROCESSES = 9, 3
LIBRARIES = ("tools/package/libcastor.so", "python/libcastor.so")  # in the folder of the build
MODULES = {"NumPy": "numpy", "ml_dtypes": "ml_dtypes", "ONNX Runtime": "onnxruntime",
           "OpenVINO": "openvino", "PyTorch": "torch"}
IMPORT = ("import time, numpy; begin = time.perf_counter(); import {0};"
          " print(time.perf_counter() - begin)")
IMPORT_NUMPY = ("import time; begin = time.perf_counter(); import numpy;"
                " print(time.perf_counter() - begin)")
RUNTIME = """
import time
from ctypes import byref, c_void_p, sizeof
from castor import _library
from castor._structures import RuntimeOptions
options, handle = RuntimeOptions(struct_size=sizeof(RuntimeOptions)), c_void_p()
begin = time.perf_counter()
_library.runtime_create(byref(options), byref(handle))
print(time.perf_counter() - begin)
"""


def seconds_of(program: str, processes: int) -> float:
    """What new processes print, the median; a first one warms the page cache."""
    times = [float(subprocess.run([sys.executable, "-c", program], check=True,
                                  capture_output=True, text=True).stdout.split()[-1])
             for _ in range(processes + 1)]
    return statistics.median(times[1:])


def stripped_bytes(library: pathlib.Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / library.name
        subprocess.run(["strip", "-o", str(stripped), str(library)], check=True)
        return stripped.stat().st_size


def package_bytes(module: str) -> int:
    """The shared libraries of a package, without those for other processors."""
    spec = importlib.util.find_spec(module)
    folder = pathlib.Path(spec.origin).parent
    folders = [folder, *folder.parent.glob(f"{module}.libs")]
    files = [path for each in folders for path in each.rglob("*.so*") if path.is_file()]
    return sum(path.stat().st_size for path in files
               if not path.is_symlink() and not any(word in path.name for word in
                                                    ("cuda", "nvshmem", "nvrtc", "gpu", "npu")))


def row(name: str, **figures: float) -> dict:
    return {"family": FAMILY, "name": name, "threads": 1, "figures": figures}


def measured(chosen: list[Peer], threads: int, quick: bool) -> Iterator[dict]:
    processes = QUICK_PROCESSES if quick else PROCESSES
    for name in LIBRARIES:
        library = LIBRARY.parents[1] / name
        if library.exists():
            yield row(f"castor, {name}, stripped", bytes=stripped_bytes(library))
    yield row("castor, package", import_seconds=seconds_of(IMPORT.format("castor"), processes))
    yield row("castor, a Runtime", create_seconds=seconds_of(RUNTIME, processes))
    for peer in chosen:
        module = MODULES.get(peer.name)
        if module is None:
            continue
        program = IMPORT_NUMPY if module == "numpy" else IMPORT.format(module)
        yield row(f"{peer.name} {peer.version}", bytes=package_bytes(module),
                  import_seconds=seconds_of(program, processes))
