# SPDX-License-Identifier: Apache-2.0
"""The JSON of a safetensors header, read by its own small grammar.

A header is {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, with strings
by name under "__metadata__". Nothing else is accepted, so a hostile header can neither nest, nor
repeat keys, nor hold numbers without end: it is refused at the first token that does not fit,
before anything is built from it. An entry that is spelled as writers spell it is taken in a single
match, which is several times faster; any other is read token by token.
"""

from __future__ import annotations

import json
import re
from typing import Callable, Dict, List, NamedTuple, NoReturn, Set, Tuple

from castor.checkpoint.errors import HeaderError

MAX_DIGITS = 20
"""Digits of an integer at most: 2^64 - 1 has 20."""

MAX_RANK = 64

MAX_TENSORS = 1 << 19
"""Tensors of a file: the largest models have fewer, and many files."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_USUAL_ENTRY = re.compile(
    r'\{ ?"dtype": ?"(\w+)", ?'
    rf'"shape": ?\[((?:{_NUMBER}(?:, ?{_NUMBER}){{0,{MAX_RANK - 1}}})?)\], ?'
    rf'"data_offsets": ?\[({_NUMBER}), ?({_NUMBER})\] ?\}}'
)
_TOKEN = re.compile(r'-?[0-9]+|[{}\[\]:,]|"[^"\\]*"')
_CONTROL = re.compile(r"[\x00-\x1f]")


class Entry(NamedTuple):
    """A tensor as the header declares it."""

    dtype: str
    shape: Tuple[int, ...]
    begin: int
    end: int


class HeaderParser:
    """A pass over the text of a header; `where` names the file in messages."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._position = 0
        self._token = ""
        self._advance()

    def parse(self) -> Tuple[Dict[str, Entry], Dict[str, str]]:
        """The tensors and the metadata."""
        tensors: Dict[str, Entry] = {}
        metadata: List[Dict[str, str]] = []

        def member(name: str) -> None:
            if name == "__metadata__":
                metadata.append(self._metadata())
            elif len(tensors) == MAX_TENSORS:
                self._fail(f"at most {MAX_TENSORS} tensors")
            else:
                tensors[name] = self._entry(name)

        self._object("the header", member)
        if self._token:
            self._fail("the end of the header")
        return tensors, metadata[0] if metadata else {}

    def _advance(self) -> None:
        space = _SPACE.match(self._text, self._position)
        begin = self._position if space is None else space.end()
        token = _TOKEN.match(self._text, begin)
        if token is not None:
            self._position, self._token = token.end(), token.group()
            return
        self._position, self._token = begin, ""
        if begin == len(self._text):
            return
        if self._text[begin] != '"':
            self._fail("a token of JSON")
        self._position = self._end_of_string(begin)
        self._token = self._text[begin : self._position]

    def _end_of_string(self, begin: int) -> int:
        """A loop over quotes: a regular expression would keep a state for each escape."""
        after = begin + 1
        while True:
            quote = self._text.find('"', after)
            if quote < 0:
                self._fail("a string with its closing quote")
            run = self._text[after:quote]
            if (len(run) - len(run.rstrip("\\"))) % 2 == 0:
                return quote + 1
            after = quote + 1

    def _fail(self, expected: str) -> NoReturn:
        begin = self._position - len(self._token)
        found = self._token or self._text[begin : begin + 20].strip() or "the end of the header"
        if len(found) > 40:
            found = found[:40] + "..."
        raise HeaderError(
            f"{self._where}: header, character {begin}: found {found}, expected {expected}"
        )

    def _take(self, token: str) -> None:
        if self._token != token:
            self._fail(f"'{token}'")
        self._advance()

    def _string(self, expected: str) -> str:
        token = self._token
        if not token.startswith('"'):
            self._fail(expected)
        if _CONTROL.search(token):
            self._fail(f"{expected} without control characters")
        value = token[1:-1]
        if "\\" in value:
            try:
                value = str(json.loads(token))
                value.encode("utf-8")
            except ValueError:  # an escape that JSON lacks, or half of a surrogate pair
                self._fail(f"{expected} with JSON's escapes")
        self._advance()
        return value

    def _integer(self, expected: str) -> int:
        token = self._token
        if not token or not (token[0].isdigit() or token[0] == "-"):
            self._fail(expected)
        plain = token == "0" or token[0] in "123456789"
        if not plain or len(token) > MAX_DIGITS or int(token) >= 1 << 64:
            self._fail(f"{expected}: 0 to 2^64 - 1, without leading zeros")
        self._advance()
        return int(token)

    def _object(self, what: str, member: Callable[[str], None]) -> None:
        self._take("{")
        keys: Set[str] = set()
        while self._token != "}":
            if keys:
                self._take(",")
            key = self._string(f"a key of {what}")
            if key in keys:
                raise HeaderError(
                    f"{self._where}: header, character {self._position}: the key {key!r} occurs"
                    f" twice in {what}, expected once"
                )
            keys.add(key)
            self._take(":")
            member(key)
        self._advance()

    def _integers(self, what: str, limit: int) -> Tuple[int, ...]:
        self._take("[")
        values: List[int] = []
        while self._token != "]":
            if values:
                self._take(",")
            if len(values) == limit:
                self._fail(f"at most {limit} integers in {what}")
            values.append(self._integer(f"an integer of {what}"))
        self._advance()
        return tuple(values)

    def _metadata(self) -> Dict[str, str]:
        metadata: Dict[str, str] = {}

        def member(key: str) -> None:
            metadata[key] = self._string(f"the string of {key!r} in __metadata__")

        self._object("__metadata__", member)
        return metadata

    def _entry(self, name: str) -> Entry:
        usual = _USUAL_ENTRY.match(self._text, self._position - len(self._token))
        if usual is None:
            return self._unusual_entry(name)
        dtype, shape, begin, end = usual.groups()
        self._position = usual.end()
        self._advance()
        extents = tuple(map(int, shape.split(","))) if shape else ()
        return Entry(dtype, extents, int(begin), int(end))

    def _unusual_entry(self, name: str) -> Entry:
        shown = repr(name if len(name) <= 200 else name[:200] + "...")
        dtypes: List[str] = []
        shapes: List[Tuple[int, ...]] = []
        offsets: List[Tuple[int, ...]] = []

        def member(key: str) -> None:
            if key == "dtype":
                dtypes.append(self._string(f"the dtype of {shown}"))
            elif key == "shape":
                shapes.append(self._integers(f"the shape of {shown}", MAX_RANK))
            elif key == "data_offsets":
                offsets.append(self._integers(f"the data_offsets of {shown}", 2))
            else:
                raise HeaderError(
                    f"{self._where}: tensor {shown}: found the key {key[:40]!r}, expected dtype,"
                    " shape and data_offsets"
                )

        self._object(f"tensor {shown}", member)
        for key, found in (("dtype", dtypes), ("shape", shapes), ("data_offsets", offsets)):
            if not found:
                raise HeaderError(f"{self._where}: tensor {shown} has no {key}")
        if len(offsets[0]) != 2:
            raise HeaderError(
                f"{self._where}: tensor {shown}: {len(offsets[0])} data_offsets, expected 2"
            )
        return Entry(dtypes[0], shapes[0], *offsets[0])
