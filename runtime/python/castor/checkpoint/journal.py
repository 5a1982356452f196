# SPDX-License-Identifier: Apache-2.0
"""What an interrupted conversion of several files has finished.

The journal is a file in the output directory while the conversion lasts. It has the options, and
for each file that is whole the identity of its input, its size and the errors of its tensors. An
entry is written when the file is on the disk under its temporary name, before it gets its final
one: a file with an entry and the final name is whole, all others are written again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Dict, List, Optional

from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.json_files import read_object, write_object
from castor.checkpoint.report import TensorError
from castor.checkpoint.safetensors import SafetensorsFile
from castor.checkpoint.target import sync_directory

JOURNAL_NAME = ".castor-quantize.json"

VERSION = 1
"""The version of the journal and of what formats store: files of another are not taken over."""


def identity(file: SafetensorsFile) -> Dict[str, Any]:
    """What tells an input from another one, and from a later state of itself."""
    header = hashlib.sha256(file.header).hexdigest()
    return {"bytes": file.size, "modified_ns": file.modified, "header_sha256": header}


class Journal:
    """The journal of an output directory, for a conversion with these options."""

    def __init__(self, directory: Path, options: Dict[str, Any], again: bool) -> None:
        self._path = directory / JOURNAL_NAME
        self._directory = directory
        self._state: Dict[str, Any] = {"version": VERSION, "options": options, "files": {}}
        if not self._path.exists() or again:
            write_object(self._path, self._state)
            sync_directory(directory)
            return
        found = read_object(self._path)
        if found.get("version") != VERSION or found.get("options") != options:
            raise CheckpointError(
                f"{directory} has an unfinished conversion with the options"
                f" {found.get('options')}, expected {options}: finish that, or begin again with"
                " --overwrite"
            )
        self._state["files"] = self._checked(found.get("files"))

    def _checked(self, files: Any) -> Dict[str, Any]:
        """The entries of a journal, each with errors that can be read."""
        try:
            for entry in files.values():
                for error in entry["errors"]:
                    TensorError.from_json(error)
            return dict(files)
        except (AttributeError, KeyError, TypeError, ValueError) as failure:
            raise CheckpointError(
                f"{self._path} is damaged ({failure!r}): --overwrite begins again"
            ) from None

    def finished(self, name: str, source: SafetensorsFile) -> Optional[List[TensorError]]:
        """The errors of a file that an interrupted conversion has finished; None if it has not."""
        entry = self._state["files"].get(name)
        if entry is None or entry.get("input") != identity(source):
            return None
        path = self._directory / name
        if not path.is_file() or path.stat().st_size != entry.get("output_bytes"):
            return None
        return [TensorError.from_json(error) for error in entry["errors"]]

    def __contains__(self, name: str) -> bool:
        return name in self._state["files"]

    def enter(
        self, name: str, source: SafetensorsFile, nbytes: int, errors: List[TensorError]
    ) -> None:
        """A file is whole, and gets its name next."""
        self._state["files"][name] = {
            "input": identity(source),
            "output_bytes": nbytes,
            "errors": [error.to_json() for error in errors],
        }
        write_object(self._path, self._state)
        sync_directory(self._directory)

    def close(self) -> None:
        """All files are there."""
        self._path.unlink()
        sync_directory(self._directory)
