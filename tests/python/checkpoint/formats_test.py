# SPDX-License-Identifier: Apache-2.0
"""What is stored, and what is read back, against the definitions of the formats."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Tuple

import castor
import numpy as np
import numpy.typing as npt
import pytest
from castor.checkpoint import Options, TensorError, convert_checkpoint
from checkpoint import files, reference
from hypothesis import given
from hypothesis import strategies as st

FORMATS = {
    "mxfp4": ("even_round", "ocp_floor", "ceil_power"),
    "mxfp8": ("even_round", "ocp_floor", "ceil_power"),
    "nvfp4": ("amax",),
    "fp8-block": ("amax", "ceil_power"),
    "int8-channel": ("full_range", "narrow_range"),
    "int4-group": ("full_range", "narrow_range"),
}
CASES = [(to, rule) for to, rules in FORMATS.items() for rule in rules]


def convert(
    x: npt.NDArray[Any], dtype: str, to: str, rule: str, group: int = 64, threads: int = 2
) -> Tuple[Any, Any, TensorError]:
    """The stored tensors, the dequantized weight, and the report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files.save(folder / "in.safetensors", {"a.weight": files.weight(x, dtype)})
        groups = group if to == "int4-group" else None
        options = Options(to, rule, groups, threads=threads, errors=True)
        (folder / "out").mkdir()
        quantized = folder / "out" / "q.safetensors"
        result = convert_checkpoint(folder / "in.safetensors", quantized, options)
        plain = folder / "out" / "d.safetensors"
        back = {"BF16": "bf16", "F16": "f16", "F32": "f32"}[dtype]
        convert_checkpoint(quantized, plain, Options(back, threads=threads))
        return files.load(quantized), files.load(plain)["a.weight"], result.errors[0]


def check(x: npt.NDArray[Any], dtype: str, to: str, rule: str, group: int = 64) -> None:
    """All bytes, and the errors."""
    tensors, decoded, error = convert(x, dtype, to, rule, group)
    wanted = reference.encode(x, to, rule, group, dtype)
    assert set(tensors) == {"a." + suffix for suffix in wanted.tensors}
    for suffix, (kind, shape, data) in wanted.tensors.items():
        found = tensors["a." + suffix]
        assert found[:2] == (kind, tuple(shape)), suffix
        if found[2] != data:
            ours, theirs = (np.frombuffer(one, np.uint8) for one in (found[2], data))
            first = int(np.flatnonzero(ours != theirs)[0])
            pytest.fail(f"{suffix} byte {first}: {ours[first]:#x}, expected {theirs[first]:#x}")
    assert decoded[0] == dtype
    assert decoded[2] == reference.stored(wanted.decoded, dtype)
    difference = np.abs(x.astype(np.float32) - wanted.decoded)
    assert error.maximum == difference.max()
    squares = np.square(difference.astype(np.float64)).sum()
    original = np.square(x.astype(np.float64)).sum()
    assert error.relative == pytest.approx(np.sqrt(squares / original) if original else 0, rel=1e-4)
    assert error.elements == x.size
    assert error.not_finite == 0


@pytest.mark.parametrize(("to", "rule"), CASES)
@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_every_rule_and_type(to: str, rule: str, dtype: str) -> None:
    check(files.random_weight((130, 384), 7, dtype), dtype, to, rule)


@pytest.mark.parametrize("to", FORMATS)
def test_several_blocks_of_rows(to: str) -> None:
    """A task has about 2 MiB: this weight has several, the last one short."""
    check(files.random_weight((1500, 1152), 3), "BF16", to, FORMATS[to][0], 128)


@given(st.sampled_from(CASES), st.integers(1, 300), st.integers(1, 5), st.integers(0, 1 << 30))
def test_shapes(case: Tuple[str, str], rows: int, blocks: int, seed: int) -> None:
    check(files.random_weight((rows, 64 * blocks), seed), "BF16", *case)


@given(st.sampled_from(["fp8-block", "int8-channel"]), st.integers(1, 300), st.integers(1, 300))
def test_any_columns(to: str, rows: int, columns: int) -> None:
    """Tiles at the edges are short."""
    check(files.random_weight((rows, columns), rows), "BF16", to, FORMATS[to][0])


@given(st.sampled_from(CASES), st.binary(min_size=2 * 32 * 32, max_size=2 * 32 * 32))
def test_any_finite_bits(case: Tuple[str, str], data: bytes) -> None:
    """Patterns of bf16 as they come, without the largest ones, whose squares overflow."""
    bits = np.frombuffer(data, "<u2") & 0xBFFF
    x = reference.bf16_values(bits).reshape(16, 64)
    check(x, "BF16", *case)


@pytest.mark.parametrize("scale", ["BF16", "F16"])
def test_fp8_with_scales_in_16_bits(scale: str) -> None:
    """As other writers store them; the last tiles are short."""
    x = files.random_weight((130, 200), 3)
    tensors = reference.encode(x, "fp8-block", "amax", 0, "BF16").tensors
    (_, shape, data), (kind, extents, codes) = tensors["weight_scale_inv"], tensors["weight"]
    scales = reference.to_dtype(reference.loaded(data, "F32", tuple(shape)), scale)
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "in.safetensors", Path(name) / "out.safetensors"
        files.save(
            source,
            {
                "a.weight": (kind, tuple(extents), codes),
                "a.weight_scale_inv": files.weight(scales, scale),
            },
        )
        convert_checkpoint(source, target, Options("f32"))
        found = files.load(target)["a.weight"]
    elements = castor.convert(castor.Tensor(codes, "f8e4m3", (130, 200)), "f32")
    wide = np.kron(scales.astype(np.float32), np.ones((128, 128), np.float32))[:130, :200]
    assert found == ("F32", (130, 200), (elements * wide).tobytes())


def test_saturated_elements_are_counted() -> None:
    x = np.ones((1, 32), np.float32)
    x[0, :3] = 7.0, -6.5, 6.0
    _, _, error = convert(x, "F32", "mxfp4", "ocp_floor")
    assert (error.saturated, error.maximum) == (2, 1.0)


def test_elements_that_are_not_finite_are_counted() -> None:
    x = np.ones((4, 64), np.float32)
    x[0, 0], x[1, 1] = np.nan, np.inf
    for to, rules in FORMATS.items():
        assert convert(x, "F32", to, rules[0])[2].not_finite == 2, to


@pytest.mark.parametrize(
    ("rule", "wanted"), [("saturate", [65504.0, -65504.0]), ("infinity", [np.inf, -np.inf])]
)
def test_casts(rule: str, wanted: list[float]) -> None:
    x = np.array([[1e6, -1e30], [0.1, 1e-9]], np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files.save(folder / "in.safetensors", {"a.weight": files.weight(x, "F32")})
        out = folder / "out.safetensors"
        result = convert_checkpoint(
            folder / "in.safetensors", out, Options("f16", rule, errors=True)
        )
        with np.errstate(over="ignore"):
            half = x.astype(np.float16)
        half[0] = wanted
        assert files.load(out)["a.weight"] == ("F16", (2, 2), half.tobytes())
        assert result.errors[0].saturated == 2


@pytest.mark.parametrize("to", ["mxfp4", "fp8-block", "int8-channel"])
@pytest.mark.parametrize("magnitude", [1e-24, 1e-21, 1e20])
def test_errors_of_extreme_weights(to: str, magnitude: float) -> None:
    """Their squares are beyond f32."""
    x = np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32)
    usual = convert(x, "F32", to, FORMATS[to][0])[2].relative
    extreme = convert(x * np.float32(magnitude), "F32", to, FORMATS[to][0])[2].relative
    assert usual / 2 < extreme < 2 * usual
