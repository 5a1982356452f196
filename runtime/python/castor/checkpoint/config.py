# SPDX-License-Identifier: Apache-2.0
"""The entry quantization_config of config.json, as the loaders of each format read it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from castor.checkpoint.formats.fp8_block import TILE
from castor.checkpoint.formats.registry import Request

_COMPRESSED_TENSORS = {
    "mxfp4": "mxfp4-pack-quantized",
    "mxfp8": "mxfp8-quantized",
    "nvfp4": "nvfp4-pack-quantized",
    "int8-channel": "int-quantized",
    "int4-group": "pack-quantized",
}
"""The names of formats in compressed-tensors."""


def _weights(request: Request) -> Dict[str, Any]:
    arguments: Dict[str, Any] = {"symmetric": True, "dynamic": False}
    if request.to in ("mxfp4", "mxfp8"):
        bits = 4 if request.to == "mxfp4" else 8
        return {
            **arguments,
            "num_bits": bits,
            "type": "float",
            "strategy": "group",
            "group_size": 32,
            "scale_dtype": "torch.uint8",
        }
    if request.to == "nvfp4":
        return {
            **arguments,
            "num_bits": 4,
            "type": "float",
            "strategy": "tensor_group",
            "group_size": 16,
            "scale_dtype": "torch.float8_e4m3fn",
        }
    if request.to == "int8-channel":
        return {**arguments, "num_bits": 8, "type": "int", "strategy": "channel"}
    return {
        **arguments,
        "num_bits": 4,
        "type": "int",
        "strategy": "group",
        "group_size": request.group,
    }


def quantization_config(request: Request, kept: List[str]) -> Dict[str, Any]:
    """The entry; `kept` are the modules with linear weights that stay floats."""
    if request.to == "fp8-block":
        entry: Dict[str, Any] = {
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "modules_to_not_convert": kept,
            "quant_method": "fp8",
            "weight_block_size": [TILE, TILE],
        }
        if request.rule == "ceil_power":
            entry["scale_fmt"] = "ue8m0"
        return entry
    name = _COMPRESSED_TENSORS[request.to]
    activations: Optional[Dict[str, Any]] = None
    if request.to == "int8-channel":
        # int-quantized is for integer products; loaders quantize activations per token.
        activations = {
            "num_bits": 8,
            "type": "int",
            "strategy": "token",
            "symmetric": True,
            "dynamic": True,
        }
    return {
        "config_groups": {
            "group_0": {
                "format": name,
                "input_activations": activations,
                "output_activations": None,
                "targets": ["Linear"],
                "weights": _weights(request),
            }
        },
        "format": name,
        "ignore": kept,
        "kv_cache_scheme": None,
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
    }


def with_entry(config: Dict[str, Any], entry: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The config with that entry, or without one."""
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    return plain if entry is None else {**plain, "quantization_config": entry}
