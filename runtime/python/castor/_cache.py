# SPDX-License-Identifier: Apache-2.0
"""A bounded cache."""

from __future__ import annotations

import threading
from typing import Any, Dict


class Cache:
    """Keeps what was made last; what was added first goes first.

    `get` takes no lock: a dictionary's look-up is atomic.
    """

    __slots__ = ("_entries", "_lock", "_max", "get")

    def __init__(self, max_entries: int) -> None:
        self._entries: Dict[Any, Any] = {}
        self._lock = threading.Lock()
        self._max = max_entries
        self.get = self._entries.get

    def add(self, key: Any, value: Any) -> None:
        """Adds or replaces an entry."""
        with self._lock:
            while len(self._entries) >= self._max:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = value

    def __len__(self) -> int:
        return len(self._entries)
