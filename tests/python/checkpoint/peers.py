# SPDX-License-Identifier: Apache-2.0
"""Loads a checkpoint of each format with the peers' own packages: a run by hand, see peers.txt.

    python tests/python/checkpoint/peers.py

It needs torch, transformers, compressed-tensors and safetensors, and CASTOR_LIBRARY. Each format is
read in one file and in several, by compressed-tensors' converter of whole checkpoints and by
transformers (which for all but fp8-block decompresses with compressed-tensors): both must give the
same bits as castor's own dequantizing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
from compressed_tensors.entrypoints.convert import (
    CompressedTensorsDequantizer,
    FP8BlockDequantizer,
    convert_checkpoint,
)
from loguru import logger
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    CompressedTensorsConfig,
    FineGrainedFP8Config,
    LlamaConfig,
    LlamaForCausalLM,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime" / "python"))

from castor.checkpoint import Options
from castor.checkpoint import convert_checkpoint as castor_convert

FORMATS = ("mxfp4", "mxfp8", "nvfp4", "fp8-block", "int8-channel", "int4-group")
WITH_EMBEDDINGS = ("mxfp4", "mxfp8", "nvfp4", "int4-group")
EMBEDDINGS = ("*embed_tokens*", "lm_head*", "*proj.weight")


def make_model(directory: Path, max_shard_size: str) -> None:
    """A small Llama with random weights of very different sizes, a row of zeros among them."""
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        dtype="bfloat16",
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    with torch.no_grad():
        for _, weight in model.named_parameters():
            if weight.ndim == 2:
                weight *= torch.exp(torch.randn(weight.shape[0], 1)).to(weight.dtype)
                weight[3] = 0
                weight[5, ::2] *= 1e-3
    model.save_pretrained(directory, max_shard_size=max_shard_size)


def tensors_of(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint."""
    found: dict[str, torch.Tensor] = {}
    for path in sorted(directory.glob("*.safetensors")):
        found.update(load_file(path))
    return found


def differences(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> str:
    """What is not the same, bit for bit; -0 and 0 differ too."""
    if set(found) != set(wanted):
        return f"names differ: {sorted(set(found) ^ set(wanted))}"
    for name, tensor in wanted.items():
        other = found[name]
        if other.dtype != tensor.dtype or other.shape != tensor.shape:
            return f"{name}: {other.dtype} {other.shape}, expected {tensor.dtype} {tensor.shape}"
        unequal = other.view(torch.int16) != tensor.view(torch.int16)
        if unequal.any():
            folder = tuple(int(one) for one in unequal.nonzero()[0])
            return (
                f"{name}: {int(unequal.sum())} of {unequal.numel()} elements differ, {folder}:"
                f" {other[folder].item()!r}, castor {tensor[folder].item()!r}"
            )
    return f"equal, {len(wanted)} tensors"


def by_converter(quantized: Path, target: Path, to: str) -> dict[str, torch.Tensor]:
    """compressed-tensors' own dequantizer of whole checkpoints."""
    config = json.loads((quantized / "config.json").read_text())["quantization_config"]
    if to == "fp8-block":
        converter = FP8BlockDequantizer(
            ignore=config["modules_to_not_convert"], targets=[r"re:.*proj$"]
        )
    else:
        # Where quantized elements are called weight, it takes those of norms for some otherwise.
        converter = CompressedTensorsDequantizer(quantized, ignore=[r"re:.*norm$"])
    convert_checkpoint(quantized, target, converter)
    return tensors_of(target)


def by_transformers(quantized: Path, to: str) -> dict[str, torch.Tensor]:
    """transformers, decompressed when loaded."""
    config = FineGrainedFP8Config if to == "fp8-block" else CompressedTensorsConfig
    options = {"quantization_config": config(dequantize=True)}
    model = AutoModelForCausalLM.from_pretrained(quantized, dtype=torch.bfloat16, **options)
    state = model.state_dict()
    return {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in state.items()
        if name.endswith("weight") and tensor.dtype in (torch.bfloat16, torch.float32)
    }


def main() -> int:
    """The number of formats that some way reads otherwise."""
    names = ("torch", "transformers", "compressed-tensors", "safetensors", "numpy")
    print(", ".join(f"{name} {version(name)}" for name in names))
    logger.remove()
    warnings.simplefilter("ignore")
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, size in (("one file", "1GB"), ("several files", "600KB")):
            make_model(folder / kind, size)
            files = len(list((folder / kind).glob("*.safetensors")))
            cases = [(to, ()) for to in FORMATS] + [(to, EMBEDDINGS) for to in WITH_EMBEDDINGS]
            for to, include in cases:
                case = f"{kind} {to}{' with embeddings' if include else ''}"
                quantized, plain = folder / case, folder / f"{case} plain"
                castor_convert(folder / kind, quantized, Options(to, threads=2, include=include))
                castor_convert(quantized, plain, Options("bf16", threads=2))
                wanted = tensors_of(plain)
                for way in ("compressed-tensors", "transformers"):
                    if way == "transformers":
                        found = by_transformers(quantized, to)
                    else:
                        found = by_converter(quantized, folder / f"{case} peer", to)
                    told = differences(found, wanted)
                    failures += not told.startswith("equal")
                    embeddings = ", embeddings too" if include else ""
                    print(f"{to}{embeddings}, {files} files, {way}: {told}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
