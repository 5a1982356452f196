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


REASONS = (
    Reason(".*", "", "", "within the noise of the machine", min_ratio=0.97),
)


def reason_of(row: Row, figure: Figure) -> str:
    return next((reason.text for reason in REASONS if reason.holds(row, figure)), UNEXPLAINED)
