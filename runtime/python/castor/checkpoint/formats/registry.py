# SPDX-License-Identifier: Apache-2.0
"""What --to names: for each format its rules, the weights that it takes, and its transform."""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Optional, Tuple

from castor.checkpoint.formats import cast, fp8_block, integer, microscaling, nvfp4
from castor.checkpoint.formats.transform import Transform
from castor.checkpoint.safetensors import TensorSpec


class Request(NamedTuple):
    """What is asked for: the format, its rule and, for int4-group, the columns of a group."""

    to: str
    rule: str
    group: int


class Format(NamedTuple):
    """The first rule is the default. Rows of a weight have whole blocks of `block` columns."""

    rules: Tuple[str, ...]
    block: Callable[[Request], int]
    encoder: Callable[[Request, TensorSpec, str], Transform]


FORMATS: Dict[str, Format] = {
    "mxfp4": Format(
        microscaling.RULES,
        lambda request: microscaling.BLOCK,
        lambda request, spec, prefix: microscaling.encoder("mxfp4", spec, prefix, request.rule),
    ),
    "mxfp8": Format(
        microscaling.RULES,
        lambda request: microscaling.BLOCK,
        lambda request, spec, prefix: microscaling.encoder("mxfp8", spec, prefix, request.rule),
    ),
    "nvfp4": Format(
        nvfp4.RULES,
        lambda request: nvfp4.BLOCK,
        lambda request, spec, prefix: nvfp4.encoder(spec, prefix),
    ),
    "fp8-block": Format(
        fp8_block.RULES,
        lambda request: 1,
        lambda request, spec, prefix: fp8_block.encoder(spec, prefix, request.rule),
    ),
    "int8-channel": Format(
        integer.RULES,
        lambda request: 1,
        lambda request, spec, prefix: integer.encoder(
            integer.INT8, spec, prefix, spec.shape[1], request.rule
        ),
    ),
    "int4-group": Format(
        integer.RULES,
        lambda request: request.group,
        lambda request, spec, prefix: integer.encoder(
            integer.INT4, spec, prefix, request.group, request.rule
        ),
    ),
}

CASTS = {"bf16": "BF16", "f16": "F16", "f32": "F32"}
"""The dtypes that floats are converted and quantized weights are dequantized to."""


def rules_of(to: str) -> Tuple[str, ...]:
    """The rules of a format, the default first."""
    return cast.RULES if to in CASTS else FORMATS[to].rules


def refusal(request: Request, spec: TensorSpec) -> Optional[str]:
    """Why a weight in floats cannot be stored in the format; None where it can."""
    block = FORMATS[request.to].block(request)
    if spec.shape[1] % block:
        return f"{spec.shape[1]} columns are not whole blocks of {block}"
    return None
