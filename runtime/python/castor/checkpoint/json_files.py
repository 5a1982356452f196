# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the small JSON files of a checkpoint: its config, its index, reports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Tuple

from castor.checkpoint.errors import CheckpointError

MAX_BYTES = 128 << 20
"""An index has about 100 bytes for each tensor."""

MAX_VALUES = 4 << 20
"""Values of all lists and objects, of which Python makes some 100 bytes each: a journal with errors
has seven for each tensor."""


def read_object(path: Path) -> Dict[str, Any]:
    """The object in a file, which has each key once."""

    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise CheckpointError(f"{path}: the key {twice!r} occurs twice, expected once")
        return made

    size = path.stat().st_size
    if size > MAX_BYTES:
        raise CheckpointError(f"{path}: {size} bytes of JSON, expected at most {MAX_BYTES}")
    try:
        text = path.read_text(encoding="utf-8")
        if sum(map(text.count, ",[{")) > MAX_VALUES:
            raise CheckpointError(f"{path}: expected at most {MAX_VALUES} values")
        found = json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise CheckpointError(f"{path}: lists or objects nest too deep") from None
    except ValueError as failure:  # wrong UTF-8 too, and numbers with thousands of digits
        raise CheckpointError(f"{path}: {failure}, expected JSON") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: found a {type(found).__name__}, expected an object")
    return found


def encoded(value: Dict[str, Any], origin: Path) -> bytes:
    """Gives the text of an object that was read from `origin`.

    It is made before anything is written, because not all that was read can be written again.
    """
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    except RecursionError:
        raise CheckpointError(f"{origin}: lists or objects nest too deep") from None
    except UnicodeEncodeError as failure:
        half = failure.object[failure.start]
        raise CheckpointError(
            f"{origin}: found {half!a}, half of a surrogate pair, expected characters"
        ) from None


def write_object(path: Path, value: Dict[str, Any]) -> None:
    """Writes an object in ASCII, which holds names that are not UTF-8 too."""
    write_file(path, (json.dumps(value, indent=2) + "\n").encode("ascii"))


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that is there whole or not at all."""
    partial = path.with_name(path.name + ".part")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
