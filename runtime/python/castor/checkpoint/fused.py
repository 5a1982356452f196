# SPDX-License-Identifier: Apache-2.0
"""Layers that loaders fuse into one.

Their weights become the rows of one matrix, which has one scale of the tensor: where each brought
its own, loaders take one of them for all (vLLM, SGLang), and the others are read wrongly.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple

FUSED = (
    ("q_proj", "k_proj", "v_proj"),
    ("gate_proj", "up_proj"),
    ("q_a_proj", "kv_a_proj_with_mqa"),
    ("w1", "w3"),
)
"""Names of modules of one parent that are fused: in attention, and before an activation."""

_FIRST = {name: names[0] for names in FUSED for name in names}


def fused_weights(names: Iterable[str]) -> Dict[str, Tuple[str, ...]]:
    """By weight, all of those that share a matrix with it, itself too, in order."""
    together: Dict[Tuple[str, str], List[str]] = {}
    for name in names:
        module, _, kind = name.rpartition(".")
        parent, _, own = module.rpartition(".")
        together.setdefault((f"{parent}.{kind}", _FIRST.get(own, own)), []).append(name)
    return {name: tuple(weights) for weights in together.values() for name in weights}
