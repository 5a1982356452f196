# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr."""

from __future__ import annotations

import sys
import threading
import time

INTERVAL = 0.1
WIDTH = 30


class Progress:
    """Counts bytes that are read; shows nothing where stderr is not a terminal.

    Whatever ends its block, the line of the bar is ended too: a message begins at a new one.
    """

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._done = 0
        self._found = 0
        self._shown = 0.0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._visible = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._visible:
            self._show(time.monotonic())
            sys.stderr.write("\n")

    def add(self, count: int) -> None:
        """That many bytes more are done."""
        if not self._visible:
            return
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now - self._shown < INTERVAL:
                return
            self._shown = now
            self._show(now)

    def skip(self, count: int) -> None:
        """That many bytes were done before: they do not count as speed."""
        with self._lock:
            self._found += count
        self.add(count)

    def _show(self, now: float) -> None:
        part = min(self._done / self._total, 1.0)
        bar = "#" * int(part * WIDTH)
        rate = (self._done - self._found) / max(now - self._started, 1e-9) / 1e9
        sys.stderr.write(
            f"\r[{bar:{WIDTH}}] {part:4.0%} {self._done / 1e9:.2f} GB, {rate:.2f} GB/s"
        )
        sys.stderr.flush()
