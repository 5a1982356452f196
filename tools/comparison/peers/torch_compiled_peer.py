# SPDX-License-Identifier: Apache-2.0
"""torch.compile: chains as C++ that torch writes and the machine's compiler builds."""
from __future__ import annotations

import os
import pathlib
import sys
import sysconfig
import tempfile
from collections.abc import Callable

import torch

from ..environment import ROOT
from ..tasks import Lacking, Prepared, Task
from . import torch_functions
from .base import Peer
from .torch_peer import tensor_of

FOLDER_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


class CompiledTorchPeer(Peer):
    name = "torch.compile"
    version = torch.__version__.split("+")[0]

    def __init__(self) -> None:
        self._empty_folder = tempfile.TemporaryDirectory(prefix="inductor")
        os.environ.setdefault(FOLDER_VARIABLE, str(ROOT / "build" / "peers" / "inductor"))

    def do_function(self, task: Task) -> Prepared:
        return torch_functions.prepare(task, tensor_of, compiled=True)

    def creation(self, task: Task) -> Callable[[], object]:
        """The first call of a new function, whose code no earlier process left in a folder."""
        if task.kind != "function":
            raise Lacking(f"compiles no {task.kind}")
        torch_functions.check(task)
        os.environ[FOLDER_VARIABLE] = self._empty_folder.name
        return lambda: torch_functions.prepare(task, tensor_of, compiled=True).run()

    do_dynamic_quantization = do_function
    do_blocks = do_function


def make(threads: int) -> Peer:
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise ImportError(f"no Python.h of {sys.executable}, which torch.compile needs")
    return CompiledTorchPeer()
