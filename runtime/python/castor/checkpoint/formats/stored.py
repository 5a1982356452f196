# SPDX-License-Identifier: Apache-2.0
"""Recognises quantized weights by the names, dtypes and shapes of their tensors."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from castor.checkpoint.dtypes import FLOATS
from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.formats import fp8_block, integer, microscaling, nvfp4
from castor.checkpoint.formats.transform import Transform
from castor.checkpoint.safetensors import TensorSpec

SUFFIXES = (
    "weight_packed",
    "weight_scale",
    "weight_scale_inv",
    "weight_global_scale",
    "weight_shape",
    "weight_zero_point",
    "weight_g_idx",
    "weight",
)


class StoredWeight(NamedTuple):
    """A quantized weight: its format, its name without "weight", its tensors and its shape."""

    format: str
    prefix: str
    names: Tuple[str, ...]
    shape: Tuple[int, int]
    scale: str
    group: int

    def decoder(self, dtype: str) -> Transform:
        """To a weight of that dtype."""
        result = TensorSpec(self.prefix + "weight", dtype, self.shape)
        if self.format in microscaling.FORMATS:
            return microscaling.decoder(self.format, result, self.prefix, self.scale)
        if self.format == "nvfp4":
            return nvfp4.decoder(result, self.prefix, self.scale)
        if self.format == "fp8-block":
            return fp8_block.decoder(result, self.prefix, self.scale)
        if self.format == "int8-channel":
            kind, group = integer.INT8, self.shape[1]
        else:
            kind, group = integer.INT4, self.group
        return integer.decoder(kind, result, self.prefix, group, self.scale)


def _classify(parts: Mapping[str, TensorSpec]) -> Optional[Tuple[str, Tuple[int, int], int]]:
    """The format, the weight's shape and the columns of a group; None where there is none."""
    scale = parts.get("weight_scale")
    packed = parts.get("weight_packed")
    weight = parts.get("weight")
    main = packed or weight
    inverse = parts.get("weight_scale_inv")
    if main is None or len(main.shape) != 2:
        return None
    rows, columns = main.shape
    names = set(parts)
    if inverse is not None and weight is not None and names == {"weight", "weight_scale_inv"}:
        tiles = (-(-rows // fp8_block.TILE), -(-columns // fp8_block.TILE))
        fits = weight.dtype == "F8_E4M3" and inverse.dtype in FLOATS and inverse.shape == tiles
        return ("fp8-block", (rows, columns), 0) if fits else None
    if scale is None or len(scale.shape) != 2 or scale.shape[0] != rows:
        return None
    groups = scale.shape[1]
    if packed is not None and packed.dtype == "U8":
        shape = (rows, 2 * columns)
        if names == {"weight_packed", "weight_scale"} and scale.dtype in ("U8", "F8_E8M0"):
            return ("mxfp4", shape, 0) if groups * microscaling.BLOCK == shape[1] else None
        whole = parts.get("weight_global_scale")
        if whole is not None and len(names) == 3 and whole.dtype == "F32" and whole.shape == (1,):
            fits = scale.dtype == "F8_E4M3" and groups * nvfp4.BLOCK == shape[1]
            return ("nvfp4", shape, 0) if fits else None
        return None
    if packed is not None and packed.dtype == "I32":
        shape = (rows, 8 * columns)
        told = parts.get("weight_shape")
        fits = told is not None and len(names) == 3 and told.dtype == "I64" and told.shape == (2,)
        if fits and scale.dtype in FLOATS and groups and shape[1] % groups == 0:
            return "int4-group", shape, shape[1] // groups
        return None
    if weight is None or names != {"weight", "weight_scale"}:
        return None
    if weight.dtype == "F8_E4M3" and scale.dtype in ("U8", "F8_E8M0"):
        return ("mxfp8", (rows, columns), 0) if groups * microscaling.BLOCK == columns else None
    if weight.dtype == "I8" and scale.dtype in FLOATS and groups == 1:
        return "int8-channel", (rows, columns), 0
    return None


def find_stored(specs: Mapping[str, TensorSpec]) -> Dict[str, StoredWeight]:
    """All quantized weights, by the name of the tensor that has their elements."""
    modules: Dict[str, Dict[str, TensorSpec]] = {}
    for name, spec in specs.items():
        prefix, _, suffix = name.rpartition(".")
        if suffix in SUFFIXES:
            modules.setdefault(prefix + "." if prefix else "", {})[suffix] = spec
    found: Dict[str, StoredWeight] = {}
    for prefix, parts in modules.items():
        if set(parts) == {"weight"}:
            continue
        kind = _classify(parts)
        if kind is None:
            told = ", ".join(f"{key} {one.dtype} {list(one.shape)}" for key, one in parts.items())
            raise CheckpointError(
                f"{prefix}weight: found {told}, expected one of the formats that castor-quantize"
                " writes (see its README)"
            )
        stored, shape, group = kind
        main = "weight_packed" if "weight_packed" in parts else "weight"
        scale = parts.get("weight_scale") or parts["weight_scale_inv"]
        found[prefix + main] = StoredWeight(
            stored, prefix, tuple(prefix + key for key in parts), shape, scale.dtype, group
        )
    return found
