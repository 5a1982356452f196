# SPDX-License-Identifier: Apache-2.0
"""The environment that the peers are installed in, and the variables that they read when they load.

Nothing here imports a peer: the process begins once more, in the environment's Python.
"""
from __future__ import annotations

import os
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TOOLS.parent
ENVIRONMENT = ROOT / "build" / "peers-venv"
LIBRARY = ROOT / "build" / "release" / "python" / "libcastor.so"
# Old builds of OpenBLAS need them on some machines; they slow NumPy.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def enter(environment: pathlib.Path, library: pathlib.Path) -> None:
    """Goes on in the Python of `environment` with castor's package of the tree."""
    python = environment / "bin" / "python"
    if not python.exists():
        sys.exit(f"peers: no environment {environment}; tools/peers --setup makes build/peers-venv")
    if not library.exists():
        sys.exit(f"peers: no {library}; build the target castor_python, or name another library"
                 " with --library")
    wanted = {"CASTOR_LIBRARY": str(library),
              "PYTHONPATH": os.pathsep.join([str(ROOT / "runtime" / "python"), str(TOOLS)]),
              "PYTHONDONTWRITEBYTECODE": "1"}
    is_there = pathlib.Path(sys.prefix) == environment
    if is_there and all(os.environ.get(name) == value for name, value in wanted.items()):
        return
    variables = {name: value for name, value in os.environ.items() if name not in UNSET}
    os.execve(python, [str(python), *sys.argv], variables | wanted)


def for_threads(threads: int) -> dict[str, str]:
    """The variables of a child process whose peers use that many threads."""
    variables = {name: value for name, value in os.environ.items() if name not in UNSET}
    number = str(threads)
    variables |= {"OMP_NUM_THREADS": number, "MKL_NUM_THREADS": number,
                  "OPENBLAS_NUM_THREADS": number, "DPCPP_CPU_NUM_CUS": number,
                  "CUDA_VISIBLE_DEVICES": ""}
    return variables | for_opencl(pathlib.Path(sys.prefix) / "lib")


def for_opencl(folder: pathlib.Path) -> dict[str, str]:
    """oneDNN's package from PyPI takes the CPU as a device of OpenCL, whose driver is beside it."""
    driver = folder / "libintelocl.so"
    if not driver.exists():
        return {}
    return {"OCL_ICD_FILENAMES": str(driver), "LD_LIBRARY_PATH": str(folder)}
