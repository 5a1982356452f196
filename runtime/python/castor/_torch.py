# SPDX-License-Identifier: Apache-2.0
"""Where the data of torch's tensors are, without torch.

Their __dlpack__ and its capsule take many times as long as these attributes. It still decides
whether a tensor is taken: only calls whose form came by __dlpack__ before go this way.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

_is_tensor: Dict[type, bool] = {}


def is_tensor(given: Any) -> bool:
    """Whether it is a torch.Tensor and of no class that derives from it, which may override all."""
    kind = type(given)
    known = _is_tensor.get(kind)
    if known is None:
        known = kind.__module__ == "torch" and kind.__qualname__ == "Tensor"
        _is_tensor[kind] = known
    return known


def form_and_address(tensor: Any) -> Optional[Tuple[Any, int]]:
    """What a prepared call is kept by, and where the data are; None where __dlpack__ must decide.

    No such tensor is read-only.
    """
    if tensor.requires_grad or not tensor.is_cpu or tensor.is_neg():
        return None
    try:
        return (tensor.dtype, tensor.shape, tensor.stride()), tensor.data_ptr()
    except RuntimeError:  # it has no strides, or no memory
        return None


def check_sign(given: Any) -> None:
    """Refuses a tensor whose elements have the other sign in memory, which __dlpack__ does not."""
    is_neg = getattr(given, "is_neg", None)
    if is_neg is not None and is_neg():
        raise BufferError("a tensor with the negative bit set: resolve_neg() makes one without")
