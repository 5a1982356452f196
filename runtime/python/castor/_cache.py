# SPDX-License-Identifier: Apache-2.0
"""A bounded cache."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Dict


class Cache:
    """Keeps what was made last; what was added first goes first.

    It has no lock, which a forked child might find taken: each step on the dictionary is atomic.
    """

    __slots__ = ("_entries", "_max", "get")

    def __init__(self, max_entries: int) -> None:
        self._entries: Dict[Any, Any] = {}
        self._max = max_entries
        self.get = self._entries.get

    def add(self, key: Any, value: Any) -> None:
        """Adds or replaces an entry."""
        entries = self._entries
        while len(entries) >= self._max:
            # Another thread may change it meanwhile; then the loop looks again.
            with suppress(KeyError, RuntimeError, StopIteration):
                del entries[next(iter(entries))]
        entries[key] = value

    def __len__(self) -> int:
        return len(self._entries)
