# SPDX-License-Identifier: Apache-2.0
"""Which tensors are converted."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple, Optional, Sequence, Tuple

from castor.checkpoint.dtypes import FLOATS
from castor.checkpoint.formats.registry import CASTS, Request, refusal
from castor.checkpoint.safetensors import TensorSpec

EMBEDDINGS = (
    "*embed*",
    "wte.*",
    "*.wte.*",
    "wpe.*",
    "*.wpe.*",
    "shared.weight",
    "*relative_attention_bias*",
)
"""Weights with such names are tables that loaders look up: they are in no linear module."""

KEPT_BY_DEFAULT = (
    *EMBEDDINGS,
    "*norm*",
    "lm_head.*",
    "*.lm_head.*",
    "head.weight",
    "output.weight",
    "*.shared_head.head.*",
    "*.eh_proj.*",
    "*.mlp.gate.*",
    "*.ffn.gate.weight",
    "*.moe.gate.*",
    "*.feed_forward.gate.weight",
    "*.block_sparse_moe.gate.*",
    "*shared_expert_gate.*",
    "*.router.*",
)
"""Embeddings, norms, output layers, DeepSeek's projection before another head, and routers of
mixtures of experts, which loaders keep as floats."""


class Selection(NamedTuple):
    """Patterns as those of a shell, for whole names of tensors.

    With `include` only tensors that match one of its patterns are converted; without, all linear
    weights but those kept by default. What matches `exclude` is kept.
    """

    include: Tuple[str, ...]
    exclude: Tuple[str, ...]

    def reason_to_keep(self, request: Request, spec: TensorSpec) -> Optional[str]:
        """Why a tensor stays as it is; None where it is converted."""
        if spec.dtype not in FLOATS:
            return f"its dtype is {spec.dtype}"
        if _matches(spec.name, self.exclude):
            return "excluded"
        if self.include:
            if not _matches(spec.name, self.include):
                return "not included"
        elif _matches(spec.name, KEPT_BY_DEFAULT):
            return "an embedding, norm, output layer or router"
        if request.to in CASTS:
            if not self.include and not is_linear(spec):
                return "not a linear weight"
            return "it has that dtype" if CASTS[request.to] == spec.dtype else None
        if not is_linear(spec):
            return "not a linear weight"
        return refusal(request, spec)


_CONV1D_MODELS = ("gpt2", "openai-gpt", "decision_transformer")
_CONV1D_WEIGHTS = ("*.c_attn.weight", "*.c_proj.weight", "*.c_fc.weight", "*.q_attn.weight")


def is_transposed(model_type: object, name: str) -> bool:
    """Whether a weight has a row for each input (Conv1D of transformers), unlike linear ones."""
    return model_type in _CONV1D_MODELS and _matches(name, _CONV1D_WEIGHTS)


def is_linear(spec: TensorSpec) -> bool:
    """Whether it is called weight and has rows and columns."""
    named = spec.name == "weight" or spec.name.endswith(".weight")
    return named and len(spec.shape) == 2 and min(spec.shape) > 0


def is_embedding(name: str) -> bool:
    """Says whether a weight with that name is an embedding."""
    return _matches(name, EMBEDDINGS)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
