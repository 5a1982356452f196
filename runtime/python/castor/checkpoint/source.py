# SPDX-License-Identifier: Apache-2.0
"""The checkpoint that is read: one file, or a directory with an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional

from castor.checkpoint.config import check_entry
from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.json_files import read_object
from castor.checkpoint.safetensors import SafetensorsFile, TensorSpec

INDEX_SUFFIX = ".safetensors.index.json"
USUAL_INDEX = "model" + INDEX_SUFFIX
CONFIG_NAME = "config.json"


class Source:
    """All files of a checkpoint, open: `shards` by name, and in `home` the file of each tensor.

    The index keeps its name: libraries look for theirs, as diffusers for
    diffusion_pytorch_model.safetensors.index.json.
    """

    def __init__(self, path: Path) -> None:
        self.is_directory = path.is_dir() or path.name.endswith(".index.json")
        self.index: Optional[Dict[str, Any]] = None
        self.index_name = ""
        if path.is_dir():
            self.directory = path
            names = self._names_in_directory()
        elif self.is_directory:
            self.directory = path.parent
            names = self._names_in_index(path)
        else:
            self.directory = path.parent
            names = [path.name]
        self.shards: Dict[str, SafetensorsFile] = {}
        self.home: Dict[str, str] = {}
        for name in names:
            file = self.directory / name
            if not file.is_file():
                raise CheckpointError(f"{file}: no such file")
            self.shards[name] = SafetensorsFile(file)
            for tensor in self.shards[name].tensors:
                if tensor in self.home:
                    raise CheckpointError(
                        f"{file}: tensor {tensor!r} is in {self.home[tensor]} too, expected it once"
                    )
                self.home[tensor] = name
        if self.index is not None:
            self._check_index()
        config = self.directory / CONFIG_NAME
        self.config = read_object(config) if config.is_file() else None
        check_entry(self.config or {}, str(config))

    def spec(self, name: str) -> TensorSpec:
        """The entry of a tensor, in any file."""
        return self.shards[self.home[name]].tensors[name].spec

    @property
    def specs(self) -> Dict[str, TensorSpec]:
        """The entries of all tensors, by name."""
        return {name: self.spec(name) for name in self.home}

    def _names_in_directory(self) -> List[str]:
        indexes = self._ending(INDEX_SUFFIX)
        if USUAL_INDEX in indexes:
            indexes = [USUAL_INDEX]
        if len(indexes) == 1:
            return self._names_in_index(self.directory / indexes[0])
        found = self._ending(".safetensors")
        if indexes or len(found) != 1:
            raise CheckpointError(
                f"{self.directory}: {len(indexes)} indexes *{INDEX_SUFFIX} and {len(found)} files"
                " *.safetensors, expected one index or one file"
            )
        return found

    def _ending(self, suffix: str) -> List[str]:
        """Lists the files in the directory that end so and are not hidden."""
        names = (path.name for path in self.directory.glob("*" + suffix) if path.is_file())
        return sorted(name for name in names if not name.startswith("."))

    def _names_in_index(self, path: Path) -> List[str]:
        if not path.is_file():
            raise CheckpointError(f"{path}: no such file")
        self.index = read_object(path)
        self.index_name = path.name
        weights = self.index.get("weight_map")
        if not isinstance(weights, dict) or not weights:
            raise CheckpointError(f"{path}: expected an object weight_map with files by tensor")
        for tensor, name in weights.items():
            plain = isinstance(name, str) and name.endswith(".safetensors")
            if not plain or Path(name).name != name or name.startswith("."):
                raise CheckpointError(
                    f"{path}: weight_map has {name!r} for {tensor!r}, expected the name of a file"
                    " *.safetensors in the same directory"
                )
        return sorted(set(weights.values()))

    def _check_index(self) -> None:
        assert self.index is not None
        weights: Dict[str, str] = self.index["weight_map"]
        for tensor in (*weights, *self.home):
            said, found = weights.get(tensor), self.home.get(tensor)
            if said != found:
                raise CheckpointError(
                    f"{self.directory}: tensor {tensor!r} is in {found}, but in {said} by the index"
                )
