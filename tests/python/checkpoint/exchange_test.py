# SPDX-License-Identifier: Apache-2.0
"""Files of the safetensors package are read here, and the other way round."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Dict, List, Tuple

import safetensors
from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.safetensors import SafetensorsFile, TensorSpec, encode_header, laid_out
from checkpoint import files
from hypothesis import given
from hypothesis import strategies as st

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=0, max_size=12).filter(
    lambda name: name != "__metadata__"
)
METADATA = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.characters(exclude_categories=["Cs"])),
    max_size=3,
)


def filled(spec: TensorSpec) -> bytes:
    """Some bytes."""
    return bytes((len(spec.name) + 7 * one) % 251 for one in range(spec.nbytes))


@given(
    st.dictionaries(NAMES, st.tuples(st.sampled_from(sorted(files.NAMES)), SHAPES), max_size=6),
    METADATA,
)
def test_reads_theirs(
    tensors: Dict[str, Tuple[str, Tuple[int, ...]]], metadata: Dict[str, str]
) -> None:
    """All dtypes that the package writes from bytes."""
    specs = [
        TensorSpec(name, dtype, (*shape, 2) if dtype == "F4" else shape)
        for name, (dtype, shape) in tensors.items()
    ]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "theirs.safetensors"
        wanted = {spec.name: (spec.dtype, spec.shape, filled(spec)) for spec in specs}
        # Two elements of F4 are one of torch's, which the package counts.
        files.save(
            path,
            {
                key: (dtype, (*shape[:-1], 1) if dtype == "F4" else shape, data)
                for key, (dtype, shape, data) in wanted.items()
            },
            metadata or None,
        )
        file = SafetensorsFile(path)
        assert file.metadata == metadata
        found = {
            key: (one.spec.dtype, one.spec.shape, file.bytes_of(key).tobytes())
            for key, one in file.tensors.items()
        }
        assert found == wanted


@given(
    st.lists(
        st.tuples(NAMES, st.sampled_from(sorted(DTYPES)), SHAPES),
        max_size=6,
        unique_by=lambda one: one[0],
    ),
    METADATA,
)
def test_they_read_ours(
    tensors: List[Tuple[str, str, Tuple[int, ...]]], metadata: Dict[str, str]
) -> None:
    """All dtypes of the format."""
    specs = [TensorSpec(name, dtype, (*shape, 4)) for name, dtype, shape in tensors]
    placed = laid_out(specs)
    data = b"".join(filled(spec) for spec, _ in placed)
    text = encode_header(placed, metadata) + data
    assert files.deserialized(text) == {
        spec.name: (spec.dtype, spec.shape, filled(spec)) for spec in specs
    }
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "ours.safetensors"
        path.write_bytes(text)
        with safetensors.safe_open(path, "np") as opened:
            assert (opened.metadata() or {}) == metadata
        assert SafetensorsFile(path).metadata == metadata
