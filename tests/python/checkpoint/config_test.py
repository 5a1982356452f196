# SPDX-License-Identifier: Apache-2.0
"""Configs and indexes: what is written of them, and what is refused before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from castor.checkpoint import CheckpointError, Options, convert_checkpoint
from checkpoint import files


def set_config(directory: Path, **entries: Any) -> None:
    """Adds entries to the config of a checkpoint."""
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def config_of(directory: Path) -> Dict[str, Any]:
    """Reads the whole config."""
    found: Dict[str, Any] = json.loads((directory / "config.json").read_text())
    return found


def refused(directory: Path, message: str, options: Options) -> None:
    """The directory and its file are refused by message, and nothing is written."""
    for source, name in ((directory, "no"), (directory / "model.safetensors", "no.safetensors")):
        with pytest.raises(CheckpointError, match=message):
            convert_checkpoint(source, directory.parent / name, options)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"quant_method": "gptq", "bits": 4}, "quant_method 'gptq'; castor-quantize reads"),
        ({"quant_method": "awq"}, "quant_method 'awq'"),
        ({"load_in_4bit": True}, "quant_method None"),
        ("bitsandbytes", "quant_method None"),
        ({"quant_method": "fp8"}, "fp8 with weight_block_size None"),
        ({"quant_method": "fp8", "weight_block_size": [64, 128]}, r"size \[64, 128\]"),
        ({"quant_method": "compressed-tensors"}, "the format None"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": 1}}, "the format None"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "'float-quantized'"),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "mixed-precision",
                "config_groups": {
                    "group_0": {"format": "pack-quantized"},
                    "group_1": {"format": "marlin-24"},
                },
            },
            "the format 'marlin-24'",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "sparsity_config": {"format": "sparse-24-bitmask"},
            },
            "the sparsity_config 'sparse-24-bitmask'",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "transform_config": {"config_groups": {}},
            },
            "a transform_config",
        ),
    ],
)
def test_what_others_quantized_is_refused(entry: Any, message: str, tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    set_config(tmp_path / "in", quantization_config=entry)
    for to in ("mxfp4", "f32"):
        refused(tmp_path / "in", message, Options(to))
    set_config(tmp_path / "in", quantization_config=None, text_config={"quantization_config": {}})
    refused(tmp_path / "in", "a quantization_config in text_config", Options("mxfp4"))


@pytest.mark.parametrize("to", ["mxfp4", "mxfp8", "nvfp4", "int4-group"])
def test_embeddings_are_targets_by_name(to: str, tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    include = ["*embed_tokens*", "lm_head*", "*.q_proj.weight"]
    convert_checkpoint(tmp_path / "in", tmp_path / "q", Options(to, include=include))
    entry = config_of(tmp_path / "q")["quantization_config"]
    assert entry["config_groups"]["group_0"]["targets"] == ["Linear", "model.embed_tokens"]
    assert not {"model.embed_tokens", "lm_head"} & set(entry["ignore"])
    convert_checkpoint(tmp_path / "q", tmp_path / "d", Options("bf16"))
    assert files.load_all(tmp_path / "d").keys() == files.load_all(tmp_path / "in").keys()


@pytest.mark.parametrize("to", ["fp8-block", "int8-channel"])
def test_embeddings_that_loaders_would_misread_are_refused(to: str, tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    options = Options(to, include=["*"])
    refused(tmp_path / "in", "embed_tokens.weight is an embedding, and .*--exclude it", options)
    convert_checkpoint(tmp_path / "in", tmp_path / "q", options._replace(exclude=["*embed*"]))


@pytest.mark.parametrize(("to", "name"), [("f32", "float32"), ("f16", "float16")])
@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_casts_change_the_dtype(to: str, name: str, key: str, tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    (tmp_path / "in" / "config.json").write_text(json.dumps({key: "bfloat16", "x": 1}))
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options(to, include=["*"]))
    assert config_of(tmp_path / "out") == {key: name, "x": 1}
    convert_checkpoint(tmp_path / "in", tmp_path / "q", Options("mxfp4"))
    assert config_of(tmp_path / "q")[key] == "bfloat16"


def test_a_config_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 1)
    config = tmp_path / "in" / "config.json"
    config.write_text('{"name": "\\ud83d", "smile": "\\ud83d\\ude00"}')
    refused(tmp_path / "in", r"found '\\ud83d', half of a surrogate pair", Options("mxfp4"))
    config.write_text('{"smile": "\\ud83d\\ude00"}')
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4"))
    assert config_of(tmp_path / "out")["smile"] == "\U0001f600"


def test_an_index_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 2)
    index = tmp_path / "in" / "model.safetensors.index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "note": "\ud83d"}))
    with pytest.raises(CheckpointError, match=r"index.json: found .*half of a surrogate pair"):
        convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4"))
    assert not (tmp_path / "out").exists()


def test_patterns_that_are_not_utf_8(tmp_path: Path) -> None:
    """The journal has them; such bytes come so from the command line."""
    files.save_model(tmp_path / "in", 1, 2)
    convert_checkpoint(tmp_path / "in", tmp_path / "out", Options("mxfp4", exclude=["\udcff"]))


def test_an_index_keeps_its_name(tmp_path: Path) -> None:
    files.save_model(tmp_path / "in", 1, 2)
    name = "diffusion_pytorch_model.safetensors.index.json"
    usual = tmp_path / "in" / "model.safetensors.index.json"
    convert_checkpoint(tmp_path / "in", tmp_path / "usual", Options("mxfp4"))
    usual.rename(tmp_path / "in" / name)
    for source in ("in", f"in/{name}"):
        convert_checkpoint(tmp_path / source, tmp_path / "out", Options("mxfp4", overwrite=True))
        assert [path.name for path in (tmp_path / "out").glob("*.index.json")] == [name]
        assert (tmp_path / "out" / name).read_bytes() == (
            tmp_path / "usual" / usual.name
        ).read_bytes()
    (tmp_path / "in" / "other.safetensors.index.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"2 indexes .* and 2 files"):
        convert_checkpoint(tmp_path / "in", tmp_path / "no", Options("mxfp4"))


def test_a_config_of_more_is_not_replaced(tmp_path: Path) -> None:
    """A single file without a config has nothing but its format to say."""
    files.save(tmp_path / "in.safetensors", {"a.weight": files.weight(np.ones((32, 64), "f4"))})
    (tmp_path / "out").mkdir()
    own = {"architectures": ["A"], "hidden_size": 64}
    (tmp_path / "out" / "config.json").write_text(json.dumps(own))
    target = tmp_path / "out" / "m.safetensors"
    for overwrite in (False, True):
        options = Options("mxfp4", overwrite=overwrite)
        result = convert_checkpoint(tmp_path / "in.safetensors", target, options)
        assert config_of(tmp_path / "out") == own
        assert ["exists and is left as it is" in note for note in result.notes] == [True]


def test_transposed_weights_are_kept(tmp_path: Path) -> None:
    """GPT-2's rows are inputs; others call linear weights so too."""
    for model, kept in (("gpt2", True), ("gpt_bigcode", False)):
        folder = tmp_path / model
        folder.mkdir()
        names = ["h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight", "h.0.x_proj.weight"]
        files.save(
            folder / "model.safetensors",
            {name: files.weight(np.ones((64, 64), "f4")) for name in names},
        )
        (folder / "config.json").write_text(json.dumps({"model_type": model}))
        result = convert_checkpoint(folder, tmp_path / f"{model}.out", Options("mxfp4"))
        assert list(result.kept.values()) == (["its rows are inputs"] * 2 if kept else [])
        assert convert_checkpoint(folder, tmp_path / f"{model}.f32", Options("f32")).converted == 3


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.mlp.shared_expert_gate.weight",
        "model.layers.61.shared_head.head.weight",
        "model.layers.61.eh_proj.weight",
        "layers.3.ffn.gate.weight",
        "head.weight",
        "model.layers.3.mlp.gate.wg.weight",
        "model.layers.3.moe.gate.weight",
        "model.layers.3.feed_forward.gate.weight",
        "model.layers.3.mlp.gate.weight",
    ],
)
def test_routers_and_output_layers_are_kept(name: str, tmp_path: Path) -> None:
    weights = [name, "model.layers.0.mlp.gate_proj.weight"]
    files.save(
        tmp_path / "in.safetensors",
        {one: files.weight(np.ones((32, 64), "f4")) for one in weights},
    )
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "m.safetensors"
    result = convert_checkpoint(tmp_path / "in.safetensors", target, Options("mxfp4"))
    assert set(result.kept) == {name}
