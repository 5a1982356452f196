# SPDX-License-Identifier: Apache-2.0
"""The files that a file of the output depends on, and what tells them from others."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, NamedTuple, Tuple

from castor.checkpoint.safetensors import SafetensorsFile


class Inputs(NamedTuple):
    """What a file of the output is computed from: the file of its name, and others.

    In others there are tensors of the same weights, or weights that are fused with them.
    """

    own: SafetensorsFile
    others: Tuple[SafetensorsFile, ...] = ()

    def identity(self) -> Dict[str, Any]:
        """What tells these from others, and from a later state of themselves."""
        found = _identity(self.own)
        if self.others:
            found["others"] = [_identity(file) for file in self.others]
        return found


def _identity(file: SafetensorsFile) -> Dict[str, Any]:
    header = hashlib.sha256(file.header).hexdigest()
    return {"bytes": file.size, "modified_ns": file.modified, "header_sha256": header}
