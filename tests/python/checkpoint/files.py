# SPDX-License-Identifier: Apache-2.0
"""Files of tests, written and read by the safetensors package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

import numpy as np
import numpy.typing as npt
import safetensors
from checkpoint import reference

Tensors = Mapping[str, Tuple[str, Tuple[int, ...], bytes]]


def save(path: Path, tensors: Tensors, metadata: Dict[str, str] | None = None) -> None:
    """By the package's writer."""
    arrays = {name: np.frombuffer(data, np.uint8) for name, (_, _, data) in tensors.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=NAMES[dtype],
            shape=list(shape),
            data_ptr=arrays[name].ctypes.data,
            data_len=arrays[name].nbytes,
        )
        for name, (dtype, shape, _) in tensors.items()
    }
    safetensors.serialize_file(specs, str(path), metadata=metadata)


def deserialized(data: bytes) -> Dict[str, Tuple[str, Tuple[int, ...], bytes]]:
    """By the package's reader."""
    read: Any = safetensors.deserialize  # without types
    return {
        name: (tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"]))
        for name, tensor in read(data)
    }


def load(path: Path) -> Dict[str, Tuple[str, Tuple[int, ...], bytes]]:
    """A whole file, by the package's reader."""
    return deserialized(path.read_bytes())


def weight(x: npt.NDArray[Any], dtype: str = "BF16") -> Tuple[str, Tuple[int, ...], bytes]:
    """A tensor of floats."""
    return dtype, x.shape, reference.stored(x, dtype)


def random_weight(shape: Tuple[int, ...], seed: int, dtype: str = "BF16") -> npt.NDArray[Any]:
    """Values of the dtype, rows of very different sizes; some zeros and some rows of zeros."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * 2.0 ** random.integers(
        -12, 8, (shape[0], *[1] * (len(shape) - 1))
    )
    x[random.random(shape) < 0.05] = 0
    if shape[0] > 2:
        x[random.integers(shape[0])] = 0
    return reference.to_dtype(x.astype(np.float32), dtype)


def model(seed: int, layers: int = 2) -> Dict[str, Tuple[str, Tuple[int, ...], bytes]]:
    """The tensors of a small transformer."""
    made = {
        "model.embed_tokens.weight": weight(random_weight((64, 256), seed)),
        "lm_head.weight": weight(random_weight((64, 256), seed + 1)),
        "model.norm.weight": weight(random_weight((256,), seed + 2)),
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        for number, (name, shape) in enumerate(_LAYER.items()):
            made[prefix + name] = weight(random_weight(shape, seed + 10 * layer + number))
    return made


_LAYER: Dict[str, Tuple[int, ...]] = {
    "self_attn.q_proj.weight": (256, 256),
    "self_attn.q_proj.bias": (256,),
    "self_attn.k_proj.weight": (64, 256),
    "mlp.gate.weight": (8, 256),
    "mlp.up_proj.weight": (384, 256),
    "mlp.down_proj.weight": (256, 384),
    "input_layernorm.weight": (256,),
}


def save_model(directory: Path, seed: int, shards: int) -> None:
    """A checkpoint in several files with an index and a config, or in one."""
    directory.mkdir()
    tensors = model(seed)
    names = list(tensors)
    weight_map = {}
    for shard in range(shards):
        name = (
            f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            if shards > 1
            else "model.safetensors"
        )
        part = {one: tensors[one] for one in names[shard::shards]}
        save(directory / name, part, {"format": "pt"})
        weight_map.update(dict.fromkeys(part, name))
    if shards > 1:
        total = sum(len(data) for _, _, data in tensors.values())
        index = {"metadata": {"total_size": total, "note": "kept"}, "weight_map": weight_map}
        (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    (directory / "config.json").write_text(json.dumps({"model_type": "llama", "dtype": "bfloat16"}))
    (directory / "tokenizer.json").write_text("{}")


def load_all(directory: Path) -> Dict[str, Tuple[str, Tuple[int, ...], bytes]]:
    """The tensors of all files."""
    found = {}
    for path in sorted(directory.glob("*.safetensors")):
        found.update(load(path))
    return found


NAMES = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "U8": "uint8",
    "I8": "int8",
    "I64": "int64",
    "I32": "int32",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
}
