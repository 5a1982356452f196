# SPDX-License-Identifier: Apache-2.0
"""Layers that loaders fuse have one NVFP4 scale of the tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from castor.checkpoint import Options, convert_checkpoint, stream
from castor.checkpoint.fused import fused_weights
from checkpoint import files, reference

GROUPS = [
    ["a.self_attn.q_proj", "a.self_attn.k_proj", "a.self_attn.v_proj"],
    ["b.self_attn.q_proj", "b.self_attn.v_proj"],
    ["a.mlp.gate_proj", "a.mlp.up_proj"],
    ["a.self_attn.q_a_proj", "a.self_attn.kv_a_proj_with_mqa"],
    ["e.experts.0.w1", "e.experts.0.w3"],
    ["e.experts.1.w1", "e.experts.1.w3"],
    ["a.self_attn.o_proj"],
    ["a.mlp.down_proj"],
    ["e.experts.0.w2"],
]


def test_which_weights_are_fused() -> None:
    names = [f"{module}.weight" for group in GROUPS for module in group]
    found = fused_weights(names)
    for group in GROUPS:
        for module in group:
            assert found[f"{module}.weight"] == tuple(f"{one}.weight" for one in group)
    assert set(found) == set(names)


def _weights() -> Dict[str, Any]:
    """Their magnitudes differ within each group."""
    modules = [module for group in GROUPS for module in group]
    return {
        f"{module}.weight": reference.to_dtype(
            files.random_weight((32, 64), number) * np.float32(5.0 ** (number % 7)), "BF16"
        )
        for number, module in enumerate(modules)
    }


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_one_scale_for_all(
    shards: int, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever files have them, and however few tensors are taken at a time."""
    monkeypatch.setattr(stream, "GROUP_BYTES", at_once)
    weights = _weights()
    names = list(weights)
    (tmp_path / "in").mkdir()
    where = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = names[shard::shards]
        files.save(tmp_path / "in" / file, {one: files.weight(weights[one]) for one in part})
        where.update(dict.fromkeys(part, file))
    index = tmp_path / "in" / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": where}))
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("nvfp4", threads=2))
    found = files.load_all(tmp_path / "out")
    for group in GROUPS:
        fused: List[Any] = [weights[f"{module}.weight"] for module in group]
        expected = reference.nvfp4(np.concatenate(fused))
        together: Dict[str, bytes] = {"weight_packed": b"", "weight_scale": b""}
        for module in group:
            for suffix in together:
                together[suffix] += found[f"{module}.{suffix}"][2]
            scale = found[f"{module}.weight_global_scale"]
            assert scale[2] == expected.tensors["weight_global_scale"][2], module
        for suffix, data in together.items():
            assert data == expected.tensors[suffix][2], (group, suffix)
