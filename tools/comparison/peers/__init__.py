# SPDX-License-Identifier: Apache-2.0
"""The peers: each module has make(threads), which gives its peer, or raises ImportError."""
from __future__ import annotations

import importlib

from .base import Peer

MODULES = ("numpy_peer", "ml_dtypes_peer", "onnxruntime_peer", "openvino_peer", "torch_peer",
           "torch_compiled_peer", "onednn_peer", "onednn_debian_peer")


def available(threads: int) -> tuple[list[Peer], dict[str, str]]:
    """The peers that are installed, and of the others what is missing."""
    found, missing = [], {}
    for name in MODULES:
        try:
            module = importlib.import_module(f"{__name__}.{name}")
            found.append(module.make(threads))
        except ImportError as failure:
            missing[name.removesuffix("_peer")] = str(failure).splitlines()[0]
    return found, missing
