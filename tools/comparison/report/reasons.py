# SPDX-License-Identifier: Apache-2.0
"""Why a peer is faster than castor where it is: the first reason whose patterns match."""
from __future__ import annotations

import dataclasses
import re

from .rows import Figure, Row

UNEXPLAINED = "not explained yet"


@dataclasses.dataclass(frozen=True)
class Reason:
    """Patterns of regular expressions; at most that far below 1, where a bound is given."""
    family: str
    name: str
    peer: str
    text: str
    min_ratio: float = 0
    threads: str = ""

    def holds(self, row: Row, figure: Figure) -> bool:
        return (figure.ratio >= self.min_ratio
                and re.fullmatch(self.family, row.family) is not None
                and re.search(self.name, row.name) is not None
                and re.search(self.peer, figure.peer) is not None
                and re.fullmatch(self.threads or ".*", str(row.threads)) is not None)


NARROW = "(u1|u2|u3|u4|u6|i2|i4|f4e2m1|f6e2m3|f6e3m2|nf4)"

REASONS = (
    Reason("conversions.*", rf"^{NARROW} to \1$", "",
           "castor unpacks and packs again what a copy of whole bytes would do"),
    Reason("conversions.*", r"^(u1|u2|u3|u4|u6|f4e2m1|nf4) to [uif](16|32)$", "ml_dtypes",
           "the window on the stack through which castor unpacks crosses a cache line, and Zen 5"
           " forwards no such store to the loads that follow: 19 cycles for 64 elements instead of"
           " 4; ml_dtypes has a byte for each element"),
    Reason(".*", "of 16 elements$", "",
           "the cost of a call: castor's checks of views and its call through ctypes"),
    Reason("conversions of 65,536", r"^(\w+) to \1$", "",
           "a copy: the cost of a call through ctypes, 0.3 us more than NumPy's own"),
    Reason(".*", "", "", "within the noise of the machine", min_ratio=0.95),
)


def reason_of(row: Row, figure: Figure) -> str:
    return next((reason.text for reason in REASONS if reason.holds(row, figure)), UNEXPLAINED)
