# SPDX-License-Identifier: Apache-2.0
"""The entry quantization_config of config.json, as the loaders of each format read it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from castor.checkpoint.errors import CheckpointError
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

_NO_EMBEDDINGS = {
    "fp8-block": "the config of fp8-block cannot name embeddings",
    "int8-channel": "loaders of int8-channel would quantize its input, which is indices",
}
"""Embeddings are refused for these reasons; compressed-tensors reads them in other formats."""

_READ_TOO = "castor-quantize reads compressed-tensors of the formats that it writes, and fp8 with"
_READ_TOO += f" weight_block_size [{TILE}, {TILE}]"


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


def quantization_config(request: Request, kept: List[str], embeddings: List[str]) -> Dict[str, Any]:
    """Gives the entry; `kept` are the modules with linear weights that stay floats.

    Converted `embeddings` are targets by name, since loaders take only linear modules for Linear.
    """
    if embeddings and request.to in _NO_EMBEDDINGS:
        reason = _NO_EMBEDDINGS[request.to]
        raise CheckpointError(f"{embeddings[0]}.weight is an embedding, and {reason}: --exclude it")
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
                "targets": ["Linear", *embeddings],
                "weights": _weights(request),
            }
        },
        "format": name,
        "ignore": kept,
        "kv_cache_scheme": None,
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
    }


def check_entry(config: Dict[str, Any], where: str) -> None:
    """Refuses a checkpoint that others quantized: its entry would be false for what is written."""
    for key, value in config.items():
        if isinstance(value, dict) and value.get("quantization_config") is not None:
            raise CheckpointError(
                f"{where}: found a quantization_config in {key}, expected one of the whole model"
            )
    entry = config.get("quantization_config")
    found = None if entry is None else _unread(entry)
    if found is not None:
        raise CheckpointError(f"{where}: quantization_config has {found}; {_READ_TOO}")


def _unread(entry: Any) -> Optional[str]:
    """Says what castor-quantize does not read of an entry; None where it reads all."""
    method = entry.get("quant_method") if isinstance(entry, dict) else None
    if method == "fp8":
        size = entry.get("weight_block_size")
        return None if size == [TILE, TILE] else f"fp8 with weight_block_size {size}"
    if method != "compressed-tensors":
        return f"quant_method {method!r}"
    if entry.get("transform_config"):  # weights of a rotated model
        return "a transform_config"
    sparsity = entry.get("sparsity_config")
    if isinstance(sparsity, dict) and sparsity.get("format", "dense") != "dense":
        return f"the sparsity_config {sparsity['format']!r}"
    groups = entry.get("config_groups")
    told = groups.values() if isinstance(groups, dict) else ()
    formats = [one["format"] for one in told if isinstance(one, dict) and one.get("format")]
    formats = formats or [entry.get("format")]
    unknown = [one for one in formats if one not in _COMPRESSED_TENSORS.values()]
    return f"the format {unknown[0]!r}" if unknown else None


def with_entry(config: Dict[str, Any], entry: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The config with that entry, or without one."""
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    return plain if entry is None else {**plain, "quantization_config": entry}
