# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: their headers, checked, and their data, mapped into memory."""

from __future__ import annotations

import json
import math
import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

import numpy as np

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.errors import HeaderError
from castor.checkpoint.header_parser import Entry, HeaderParser

if TYPE_CHECKING:
    import numpy.typing as npt

LENGTH_BYTES = 8
"""A file begins with the number of its header's bytes, which has this many itself."""

MAX_HEADER_BYTES = 100_000_000
"""As the safetensors library has it."""


class TensorSpec(NamedTuple):
    """A tensor's name, dtype and shape."""

    name: str
    dtype: str
    shape: Tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of its data."""
        return math.prod(self.shape) * DTYPES[self.dtype].bits // 8


class StoredTensor(NamedTuple):
    """A tensor and the offset of its data in the file."""

    spec: TensorSpec
    offset: int


def _checked_spec(name: str, entry: Entry, where: str) -> TensorSpec:
    dtype = DTYPES.get(entry.dtype)
    if dtype is None:
        raise HeaderError(
            f"{where}: tensor {name!r}: found the dtype {entry.dtype[:40]!r}, expected one of"
            f" {', '.join(DTYPES)}"
        )
    elements = 1
    for extent in entry.shape:
        elements *= extent
        if elements * dtype.bits >= 1 << 64:
            raise HeaderError(
                f"{where}: tensor {name!r}: the bits of {dtype.name} {list(entry.shape)} overflow"
                " 64 bits"
            )
    if elements * dtype.bits % 8:
        raise HeaderError(
            f"{where}: tensor {name!r}: {elements} elements of {dtype.name} do not fill whole bytes"
        )
    if entry.end < entry.begin or entry.end - entry.begin != elements * dtype.bits // 8:
        raise HeaderError(
            f"{where}: tensor {name!r}: data_offsets [{entry.begin}, {entry.end}], expected"
            f" {elements * dtype.bits // 8} bytes for {dtype.name} {list(entry.shape)}"
        )
    return TensorSpec(name, dtype.name, entry.shape)


def _check_cover(entries: Mapping[str, Entry], data_bytes: int, where: str) -> None:
    """The tensors follow one another from the first byte of the data to the last."""
    position, before = 0, "the beginning of the data"
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != position:
            kind = "overlaps" if entry.begin < position else "leaves a gap after"
            raise HeaderError(
                f"{where}: tensor {name!r} begins at byte {entry.begin} of the data and {kind}"
                f" {before}, expected byte {position}"
            )
        position, before = entry.end, f"tensor {name!r}"
    if position != data_bytes:
        raise HeaderError(
            f"{where}: {data_bytes} bytes of data, expected the {position} of its tensors: the"
            f" file is {'truncated' if data_bytes < position else 'too long'}"
        )


def parse_header(
    text: bytes, data_bytes: int, where: str
) -> Tuple[List[StoredTensor], Dict[str, str]]:
    """The tensors, in the order of their data, and the metadata; offsets count from the data."""
    if not text.startswith(b"{"):
        raise HeaderError(f"{where}: the header begins with {text[:1]!r}, expected '{{'")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise HeaderError(
            f"{where}: header, byte {failure.start}: found 0x{text[failure.start]:02x}, expected"
            " UTF-8"
        ) from None
    entries, metadata = HeaderParser(decoded, where).parse()
    tensors = [
        StoredTensor(_checked_spec(name, entry, where), entry.begin)
        for name, entry in entries.items()
    ]
    _check_cover(entries, data_bytes, where)
    tensors.sort(key=lambda tensor: (tensor.offset, tensor.offset + tensor.spec.nbytes))
    return tensors, metadata


class SafetensorsFile:
    """An open file, mapped read-only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            self.size = status.st_size
            self.modified = status.st_mtime_ns
            prefix = file.read(LENGTH_BYTES)
            length = int.from_bytes(prefix, "little")
            where = str(path)
            if len(prefix) < LENGTH_BYTES:
                raise HeaderError(f"{where}: {len(prefix)} bytes, expected at least {LENGTH_BYTES}")
            if length > MAX_HEADER_BYTES:
                raise HeaderError(
                    f"{where}: a header of {length} bytes, expected at most {MAX_HEADER_BYTES}"
                )
            if length > self.size - LENGTH_BYTES:
                raise HeaderError(
                    f"{where}: a header of {length} bytes, but only {self.size - LENGTH_BYTES}"
                    " follow: the file is truncated"
                )
            self.header = file.read(length)
            begin = LENGTH_BYTES + length
            tensors, self.metadata = parse_header(self.header, self.size - begin, where)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.tensors = {
            tensor.spec.name: StoredTensor(tensor.spec, begin + tensor.offset) for tensor in tensors
        }
        self.data: npt.NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)

    def bytes_of(self, name: str) -> npt.NDArray[np.uint8]:
        """The data of a tensor, a view of the mapped file."""
        tensor = self.tensors[name]
        return self.data[tensor.offset : tensor.offset + tensor.spec.nbytes]

    def forget(self, name: str) -> None:
        """Unmaps the pages of a tensor, which stay in the page cache; resident memory stays low."""
        tensor = self.tensors[name]
        begin = -(-tensor.offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (tensor.offset + tensor.spec.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def laid_out(specs: Iterable[TensorSpec]) -> List[StoredTensor]:
    """Where the data of these tensors go: wide elements first, so that all are aligned."""
    offset = 0
    placed = []
    for spec in sorted(specs, key=lambda spec: -DTYPES[spec.dtype].bits):
        placed.append(StoredTensor(spec, offset))
        offset += spec.nbytes
    return placed


def encode_header(tensors: Iterable[StoredTensor], metadata: Mapping[str, str]) -> bytes:
    """What a file begins with: the length and the header, padded to whole words of 8 bytes."""
    header: Dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    for spec, offset in tensors:
        header[spec.name] = {
            "dtype": spec.dtype,
            "shape": list(spec.shape),
            "data_offsets": [offset, offset + spec.nbytes],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise HeaderError(
            f"the output's header takes {len(text)} bytes, more than {MAX_HEADER_BYTES}"
        )
    return len(text).to_bytes(LENGTH_BYTES, "little") + text
