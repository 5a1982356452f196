# SPDX-License-Identifier: Apache-2.0
"""What is reported to the user of a checkpoint."""

from __future__ import annotations


class CheckpointError(Exception):
    """A file, a directory or an option that does not fit; the message is for the user."""


class HeaderError(CheckpointError):
    """A safetensors file that breaks a rule of the format."""
