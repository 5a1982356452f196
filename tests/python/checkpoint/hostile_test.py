# SPDX-License-Identifier: Apache-2.0
"""Hostile files are refused by message: a table of them, and mutations of good ones.

CASTOR_LONG=1 makes 2,000,000 mutations. What is accepted here the safetensors package accepts too,
with the same tensors.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import resource
import time
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from castor.checkpoint import CheckpointError, HeaderError, header_parser
from castor.checkpoint.header_parser import HeaderParser
from castor.checkpoint.json_files import read_object
from castor.checkpoint.safetensors import MAX_HEADER_BYTES, SafetensorsFile, parse_header
from checkpoint import files

MUTATIONS = 2_000_000 if os.environ.get("CASTOR_LONG") else 20_000


def framed(header: bytes, data: bytes = b"", length: Optional[int] = None) -> bytes:
    """A file with that header."""
    size = len(header) if length is None else length
    return size.to_bytes(8, "little") + header + data


def entry(dtype: Any = "U8", shape: Any = (4,), offsets: Any = (0, 4)) -> Dict[str, Any]:
    """A tensor in a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def header(**tensors: Any) -> bytes:
    """As JSON."""
    return json.dumps(tensors).encode()


ONE = '"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
HUGE = 1 << 62

REFUSED = {
    "nothing": (b"", "0 bytes, expected at least 8"),
    "half a length": (b"\x01\0\0", "3 bytes, expected at least 8"),
    "a length beyond the file": (
        framed(b"{}", length=3),
        "but only 2 follow: the file is truncated",
    ),
    "a length that overflows": (framed(b"{}", length=2**64 - 1), f"at most {MAX_HEADER_BYTES}"),
    "a length of 2^63": (framed(b"{}", length=2**63), f"at most {MAX_HEADER_BYTES}"),
    "a header above the limit": (framed(b"{}", length=MAX_HEADER_BYTES + 1), "expected at most"),
    "no header": (framed(b""), "begins with b''"),
    "a list": (framed(b"[]"), "begins with b'['"),
    "space first": (framed(b" {}"), "begins with b' '"),
    "not UTF-8": (framed(b'{"\xff":1}'), "found 0xff, expected UTF-8"),
    "not closed": (framed(b'{"a":'), "expected '{'"),
    "a string not closed": (framed(b'{"aaaa'), "expected a string with its closing quote"),
    "something after": (framed(b"{}{}"), "expected the end of the header"),
    "zero bytes after": (framed(b"{}\0\0"), "expected a token of JSON"),
    "a number for a tensor": (framed(b'{"a":1}'), "found 1, expected '{'"),
    "null for a tensor": (framed(b'{"a":null}'), "expected a token of JSON"),
    "nested lists": (framed(b'{"a":' + b"[" * 1_000_000), "found [, expected '{'"),
    "nested objects": (framed(b'{"a":' * 1_000_000), "expected dtype, shape and data_offsets"),
    "nested in a shape": (
        framed(b'{"a":{"dtype":"U8","shape":[' + b"[" * 1_000_000),
        "found [, expected an integer of the shape",
    ),
    "nested in the metadata": (
        framed(b'{"__metadata__":{"a":' + b"[" * 1_000_000),
        "found [, expected the string of 'a' in __metadata__",
    ),
    "a number in the metadata": (framed(b'{"__metadata__":{"a":1}}'), "expected the string of 'a'"),
    "a comma too much": (framed(("{" + ONE + ",}").encode(), b"abcd"), "expected a key"),
    "no comma": (framed(("{" + ONE + ONE + "}").encode(), b"abcd"), "expected ','"),
    "a name twice": (framed(("{" + ONE + "," + ONE + "}").encode(), b"abcd"), "'a' occurs twice"),
    "a name twice, escaped": (
        framed(("{" + ONE + "," + ONE.replace('"a"', '"\\u0061"') + "}").encode(), b"abcd"),
        "'a' occurs twice",
    ),
    "metadata twice": (framed(b'{"__metadata__":{},"__metadata__":{}}'), "occurs twice"),
    "a key twice": (framed(b'{"a":{"dtype":"U8","dtype":"U8"}}'), "'dtype' occurs twice"),
    "half a surrogate": (framed(b'{"\\ud800":{}}'), "JSON's escapes"),
    "an unknown escape": (framed(b'{"\\x":{}}'), "JSON's escapes"),
    "a line break in a name": (framed(b'{"a\nb":{}}'), "without control characters"),
    "an unknown key": (framed(header(a={**entry(), "more": 1}), b"abcd"), "found the key 'more'"),
    "no dtype": (framed(b'{"a":{"shape":[4],"data_offsets":[0,4]}}', b"abcd"), "has no dtype"),
    "no shape": (framed(b'{"a":{"dtype":"U8","data_offsets":[0,4]}}', b"abcd"), "has no shape"),
    "no offsets": (framed(b'{"a":{"dtype":"U8","shape":[4]}}', b"abcd"), "has no data_offsets"),
    "an unknown dtype": (framed(header(a=entry("X9")), b"abcd"), "found the dtype 'X9'"),
    "a dtype in small letters": (framed(header(a=entry("u8")), b"abcd"), "found the dtype 'u8'"),
    "a float in the shape": (framed(b'{"a":{"dtype":"U8","shape":[4.0'), "expected a token"),
    "a negative extent": (framed(header(a=entry(shape=[-4])), b"abcd"), "0 to 2^64 - 1"),
    "minus nothing": (framed(b'{"a":{"dtype":"U8","shape":[-]'), "expected a token"),
    "a leading zero": (framed(b'{"a":{"dtype":"U8","shape":[04]'), "without leading zeros"),
    "a number of 2^64": (framed(header(a=entry(shape=[1 << 64])), b"abcd"), "0 to 2^64 - 1"),
    "a million digits": (framed(b'{"a":{"dtype":"U8","shape":[' + b"9" * 10**6), "0 to 2^64 - 1"),
    "100 axes": (framed(header(a=entry(shape=[1] * 100))), "at most 64 integers"),
    "three offsets": (framed(header(a=entry(offsets=[0, 4, 4])), b"abcd"), "at most 2 integers"),
    "one offset": (framed(header(a=entry(offsets=[0])), b"abcd"), "1 data_offsets, expected 2"),
    "offsets backwards": (framed(header(a=entry(offsets=[4, 0])), b"abcd"), "expected 4 bytes"),
    "too few bytes": (framed(header(a=entry(offsets=[0, 3])), b"abc"), "expected 4 bytes"),
    "too many bytes": (framed(header(a=entry("I16", [4], [0, 4])), b"abcd"), "expected 8 bytes"),
    "elements that overflow": (
        framed(header(a=entry(shape=[HUGE, HUGE]))),
        "overflow 64 bits",
    ),
    "bits that overflow": (framed(header(a=entry("F64", [1 << 60]))), "overflow 64 bits"),
    "a product that wraps to 0": (
        framed(header(a=entry(shape=[1 << 32, 1 << 32], offsets=[0, 0]))),
        "overflow 64 bits",
    ),
    "half a byte": (framed(header(a=entry("F4", [3], [0, 2])), b"ab"), "do not fill whole bytes"),
    "an overlap": (
        framed(header(a=entry(), b=entry(offsets=[2, 6])), b"abcdef"),
        "'b' begins at byte 2 of the data and overlaps tensor 'a', expected byte 4",
    ),
    "the same offsets": (framed(header(a=entry(), b=entry()), b"abcd"), "overlaps tensor 'a'"),
    "a gap": (
        framed(header(a=entry(), b=entry(offsets=[5, 9])), b"abcdefghi"),
        "'b' begins at byte 5 of the data and leaves a gap after tensor 'a', expected byte 4",
    ),
    "a gap at the beginning": (
        framed(header(a=entry(offsets=[1, 5])), b"abcde"),
        "leaves a gap after the beginning of the data",
    ),
    "truncated data": (framed(header(a=entry()), b"abc"), "the file is truncated"),
    "bytes after the data": (framed(header(a=entry()), b"abcde"), "the file is too long"),
    "offsets beyond the file": (
        framed(header(a=entry(offsets=[HUGE, HUGE + 4])), b""),
        "leaves a gap",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    """With a message that says what was found and expected, quickly and in little memory."""
    data, message = REFUSED[name]
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(data)
    began = time.monotonic()
    with pytest.raises(HeaderError) as raised:
        SafetensorsFile(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert len(str(raised.value)) < 600 + len(str(path))
    assert time.monotonic() - began < 2


def test_a_header_of_the_largest_size_is_read_in_bounded_memory() -> None:
    """Escapes and quotes by the million, which some parsers take quadratic time for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = b'\\"' * (4 << 20)
    text = b'{"__metadata__":{"a":"' + value + b'"}}'
    began = time.process_time()
    _, metadata = parse_header(text, 0, "large")
    assert len(metadata["a"]) == 4 << 20
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_usual_and_unusual_spelling_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries as writers spell them are taken in one match; token by token they are no others."""
    shapes: Any = {"a": (2, 3), "\u00e4.b": (), "c": (0, 18446744073709551615), "d": (1,) * 64}
    sizes = {name: 2 * math.prod(shape) for name, shape in shapes.items()}
    ends = dict(zip(sizes, itertools.accumulate(sizes.values())))
    entries = {
        name: entry("BF16", shape, (ends[name] - sizes[name], ends[name]))
        for name, shape in shapes.items()
    }
    reversed_keys = {name: dict(reversed(list(one.items()))) for name, one in entries.items()}
    unusual = parse_header(json.dumps(reversed_keys).encode(), max(ends.values()), "m")
    assert [spec.shape for spec, _ in unusual[0]] == list(shapes.values())
    del entries["c"]  # 20 digits are no usual ones
    usual = [json.dumps(entries), json.dumps(entries, separators=(",", ":"), ensure_ascii=False)]
    monkeypatch.setattr(HeaderParser, "_unusual_entry", lambda *_: pytest.fail("not usual"))
    for text in usual:
        found = parse_header(text.encode(), max(ends.values()), "m")
        assert found[0] == [one for one in unusual[0] if one.spec.name != "c"]


GOOD = (
    framed(header(a=entry())[:-1] + b"}   ", b"abcd"),
    framed(b"{}"),
    framed(
        json.dumps(
            {
                "__metadata__": {"format": "pt", "\u00e4": "\n\\"},
                "model.x.weight": entry("BF16", [2, 3], [0, 12]),
                "scalar": entry("F32", [], [12, 16]),
                "empty": entry("I64", [0, 5], [16, 16]),
                "four": entry("F4", [2, 2], [16, 18]),
            }
        ).encode(),
        bytes(range(18)),
    ),
)

FRAGMENTS = [b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\", b"0", b"-1", b"18446744073709551616"]
FRAGMENTS += [
    b"e9",
    b"null",
    b"\xff",
    b"\0",
    b'"a"',
    b'"dtype"',
    b'"shape"',
    b'"F4"',
    b"\\ud83d",
    b" ",
]


def mutated(draw: random.Random) -> bytes:
    """A good file with some bytes changed, added or removed; often the length fits again."""
    data = bytearray(draw.choice(GOOD))
    begin = draw.choice((0, 8, 8, 8))
    for _ in range(draw.randint(1, 4)):
        position = draw.randint(begin, len(data))
        kind = draw.randrange(5)
        if kind == 0:
            data[position:position] = draw.choice(FRAGMENTS)
        elif kind == 1:
            del data[position : position + draw.randint(1, 8)]
        elif kind == 2 and position < len(data):
            data[position] ^= 1 << draw.randrange(8)
        elif kind == 3:
            other = draw.randint(begin, len(data))
            data[position:position] = data[min(position, other) : max(position, other)]
        else:
            data[position : position + len(FRAGMENTS[0])] = draw.choice(FRAGMENTS)
    if draw.random() < 0.7 and len(data) >= 8:
        size = bytes(data).rfind(b"}") + 1 - 8
        data[:8] = max(size, 0).to_bytes(8, "little")
    return bytes(data)


def test_mutations() -> None:
    """Nothing but HeaderError is raised; what is accepted, the safetensors package accepts."""
    draw = random.Random(27)
    accepted = 0
    for number in range(MUTATIONS):
        data = mutated(draw)
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > len(data) - 8:
            continue
        try:
            tensors, metadata = parse_header(data[8 : 8 + length], len(data) - 8 - length, "m")
        except HeaderError:
            continue
        accepted += 1
        begin = 8 + length
        assert files.deserialized(data) == {
            spec.name: (
                spec.dtype,
                spec.shape,
                data[begin + offset : begin + offset + spec.nbytes],
            )
            for spec, offset in tensors
        }, (number, data)
        assert all(isinstance(value, str) for value in metadata.values())
    assert accepted > MUTATIONS // 100


@pytest.mark.parametrize(
    "text", ['{"weight_map":[' + "[]," * 5_000_000 + "[]]}", '{"a":[' + "0," * 5_000_000 + "0]}"]
)
def test_values_by_the_million_are_refused(text: str, tmp_path: Path) -> None:
    """Python makes far more bytes of them than a file has."""
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="expected at most 4194304 values"):
        read_object(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_tensors_by_the_million_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_parser, "MAX_TENSORS", 3)
    entries = {f"t{n}": entry("F32", [0], [0, 0]) for n in range(4)}
    parse_header(json.dumps(dict(list(entries.items())[:3])).encode(), 0, "m")
    with pytest.raises(HeaderError, match="at most 3 tensors"):
        parse_header(json.dumps(entries).encode(), 0, "m")
