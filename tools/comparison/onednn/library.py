# SPDX-License-Identifier: Apache-2.0
"""The functions of peer.hpp by ctypes."""
from __future__ import annotations

import ctypes
import pathlib
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p
from typing import Any

from ..tasks import Lacking
from . import build

# What oneDNN for SYCL needs, in the order of their needs; they are beside it.
COMPANIONS = ("libirng.so", "libintlc.so.5", "libimf.so", "libsvml.so", "libtbb.so.12",
              "libhwloc.so.15", "libumf.so.1", "libur_loader.so.0", "libsycl.so.9")


class ConvolutionTask(ctypes.Structure):
    """ConvolutionTask of peer.hpp."""
    _fields_ = [("axes", c_int32), ("channels", c_int64), ("out_channels", c_int64),
                ("kernel", c_int64), ("stride", c_int64), ("pad", c_int64), ("groups", c_int64),
                ("extents", c_int64 * 4), ("out_extents", c_int64 * 4), ("x_type", c_char_p),
                ("w_type", c_char_p), ("y_type", c_char_p), ("x", c_void_p), ("w", c_void_p),
                ("bias", c_void_p), ("y", c_void_p), ("x_zero_point", c_int32),
                ("y_zero_point", c_int32), ("x_scale", c_float), ("y_scale", c_float),
                ("w_scales", c_void_p)]


FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "peer_error": (c_char_p, []),
    "peer_version": (c_int, []),
    "peer_has_queue": (c_int, []),
    "peer_implementation": (c_char_p, [c_void_p]),
    "peer_run": (c_int, [c_void_p, c_int]),
    "peer_destroy": (None, [c_void_p]),
    "peer_reorder": (c_void_p, [c_char_p, c_char_p, c_int64, c_void_p, c_void_p]),
    "peer_convolution": (c_void_p, [POINTER(ConvolutionTask)]),
    "peer_matmul": (c_void_p, [c_char_p, c_char_p, c_int64, c_int64, c_int64, c_void_p, c_void_p,
                               c_void_p, c_int32]),
    "peer_binary": (c_void_p, [c_char_p, c_char_p, c_char_p, c_char_p, c_int64, c_int64, c_int64,
                               c_void_p, c_void_p, c_void_p, c_void_p]),
    "peer_clip": (c_void_p, [c_int64, c_float, c_float, c_void_p, c_void_p]),
    "peer_set_cache": (None, [c_int]),
}


class Library:
    """oneDNN through our functions; a call is destroyed with its object."""

    def __init__(self, location: build.Location):
        for name in COMPANIONS:
            path = location.library.parent / name
            if path.exists() and str(location.library.parent) != "/usr/lib/x86_64-linux-gnu":
                load(path, ctypes.RTLD_GLOBAL)
        self._library = load(build.compiled(location), ctypes.RTLD_LOCAL)
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, parameters
        self.run = self._library.peer_run

    @property
    def version(self) -> str:
        number = self._library.peer_version()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    @property
    def has_queue(self) -> bool:
        """Whether executions go through a queue of SYCL."""
        return bool(self._library.peer_has_queue())

    def call(self, kind: str, *arguments: Any) -> Call:
        """A call of peer_<kind>; raises Lacking with oneDNN's message."""
        made = getattr(self._library, f"peer_{kind}")(*arguments)
        if not made:
            raise Lacking(self._library.peer_error().decode())
        return Call(self._library, made)

    def set_cache(self, primitives: int) -> None:
        self._library.peer_set_cache(primitives)


class Call:
    """A primitive with its memory."""

    def __init__(self, library: ctypes.CDLL, pointer: int):
        self._library = library
        self.pointer = c_void_p(pointer)

    @property
    def implementation(self) -> str:
        return self._library.peer_implementation(self.pointer).decode()

    def run(self) -> None:
        """Once; raises Lacking with oneDNN's message."""
        if self._library.peer_run(self.pointer, 1):
            raise Lacking(self._library.peer_error().decode())

    def __del__(self) -> None:
        self._library.peer_destroy(self.pointer)


def load(path: pathlib.Path, mode: int) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError as failure:
        raise ImportError(str(failure)) from failure
