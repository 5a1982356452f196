# SPDX-License-Identifier: Apache-2.0
"""What an interrupted conversion of several files has finished.

The journal is a file in the output directory while the conversion lasts; of a single file, one
beside it, which is written when something of it is finished. It has the options, and for each file
that is whole the identity of its input, its size and the errors of its tensors. An entry is written
when the file is on the disk under its temporary name, before it gets its final one: a file with an
entry and the final name is whole. Of one file that is begun it has the tensors that are on the disk
under the temporary name, where the next run goes on. All others are written again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.inputs import Inputs
from castor.checkpoint.json_files import read_object, write_object
from castor.checkpoint.plan import ShardPlan
from castor.checkpoint.report import TensorError
from castor.checkpoint.target import sync_directory

JOURNAL_NAME = ".castor-quantize.json"

FILE_JOURNAL_SUFFIX = ".part.json"
"""The journal of a single file has the file's name and this."""

VERSION = 2
"""The version of the journal and of what formats store: files of another are not taken over."""


Done = Dict[str, Optional[TensorError]]
"""Tensors of the input that are finished, and their errors where they are asked for."""


def _errors_of(entry: Mapping[str, Any]) -> Done:
    """The tensors of a file that is begun."""
    return {
        name: None if error is None else TensorError.from_json(error)
        for name, error in entry["tensors"].items()
    }


class Journal:
    """The journal at `path`, for a conversion with these options; `again` forgets what it has."""

    def __init__(self, path: Path, options: Dict[str, Any], again: bool) -> None:
        self._path = path
        self._directory = path.parent
        self._state: Dict[str, Any] = {"version": VERSION, "options": options, "files": {}}
        if again:
            self.close()
        if not path.exists():
            return
        found = read_object(self._path)
        if found.get("version") != VERSION:
            raise CheckpointError(
                f"{path} is of another version of castor-quantize: begin again with --overwrite"
            )
        if found.get("options") != options:
            raise CheckpointError(
                f"{path} is of an unfinished conversion with the options"
                f" {found.get('options')}, expected {options}: finish that, or begin again with"
                " --overwrite"
            )
        self._state["files"] = self._checked(found.get("files"))
        self._state["begun"] = self._checked_begun(found.get("begun"))

    def write(self) -> None:
        """Makes the journal durable."""
        write_object(self._path, self._state)
        sync_directory(self._directory)

    def _damaged(self, failure: Exception) -> CheckpointError:
        return CheckpointError(f"{self._path} is damaged ({failure!r}): --overwrite begins again")

    def _checked(self, files: Any) -> Dict[str, Any]:
        """The entries of a journal, each with errors that can be read."""
        try:
            for entry in files.values():
                for error in entry["errors"]:
                    TensorError.from_json(error)
            return dict(files)
        except (AttributeError, KeyError, TypeError, ValueError) as failure:
            raise self._damaged(failure) from None

    def _checked_begun(self, entry: Any) -> Optional[Dict[str, Any]]:
        if entry is None:
            return None
        try:
            _errors_of(entry)
            return dict(entry)
        except (AttributeError, KeyError, TypeError, ValueError) as failure:
            raise self._damaged(failure) from None

    def begun(self, shard: ShardPlan, inputs: Inputs, file: int) -> Done:
        """What an interrupted conversion has finished of a file; `file` has its temporary name."""
        entry = self._state.get("begun")
        if entry is None or self._begun_entry(shard, inputs, file, {}) != {**entry, "tensors": {}}:
            return {}
        done = _errors_of(entry)
        written = [spec.name for job in shard.jobs if job.name in done for spec in job.specs]
        ends = [shard.tensors[name].offset + shard.tensors[name].spec.nbytes for name in written]
        # A file of the same number may have been made since: then it is shorter.
        return done if os.fstat(file).st_size >= max(ends, default=1) else {}

    def begin(self, shard: ShardPlan, inputs: Inputs, file: int, done: Done) -> None:
        """These tensors are on the disk."""
        self._state["begun"] = self._begun_entry(shard, inputs, file, done)
        self.write()

    def forget_begun(self) -> None:
        """Nothing is on the disk any more of a file that was begun: it gets its size again."""
        if self._state.get("begun") is not None:
            self._state["begun"] = None
            self.write()

    @staticmethod
    def _begun_entry(shard: ShardPlan, inputs: Inputs, file: int, done: Done) -> Dict[str, Any]:
        return {
            "name": shard.name,
            "input": inputs.identity(),
            "header_sha256": hashlib.sha256(shard.header).hexdigest(),
            "inode": os.fstat(file).st_ino,
            "tensors": {
                name: None if error is None else error.to_json() for name, error in done.items()
            },
        }

    def finished(self, name: str, inputs: Inputs) -> Optional[List[TensorError]]:
        """The errors of a file that an interrupted conversion has finished; None if it has not."""
        entry = self._state["files"].get(name)
        if entry is None or entry.get("input") != inputs.identity():
            return None
        path = self._directory / name
        if not path.is_file() or path.stat().st_size != entry.get("output_bytes"):
            return None
        return [TensorError.from_json(error) for error in entry["errors"]]

    def __contains__(self, name: str) -> bool:
        return name in self._state["files"]

    def enter(self, name: str, inputs: Inputs, nbytes: int, errors: List[TensorError]) -> None:
        """A file is whole, and gets its name next."""
        self._state["files"][name] = {
            "input": inputs.identity(),
            "output_bytes": nbytes,
            "errors": [error.to_json() for error in errors],
        }
        self._state["begun"] = None
        self.write()

    def close(self) -> None:
        """All files are there."""
        if self._path.exists():
            self._path.unlink()
            sync_directory(self._directory)
