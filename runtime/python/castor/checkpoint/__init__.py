# SPDX-License-Identifier: Apache-2.0
"""Conversion of whole checkpoints in safetensors files; see README.md beside this file."""

from castor.checkpoint.convert import Options, Result, convert_checkpoint
from castor.checkpoint.errors import CheckpointError, HeaderError
from castor.checkpoint.report import TensorError

__all__ = [
    "CheckpointError",
    "HeaderError",
    "Options",
    "Result",
    "TensorError",
    "convert_checkpoint",
]
