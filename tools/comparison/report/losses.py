# SPDX-License-Identifier: Apache-2.0
"""Every figure in which a peer is faster than castor."""
from __future__ import annotations

import collections
import dataclasses

from .reasons import UNEXPLAINED, reason_of
from .rows import Figure, Row, Run


@dataclasses.dataclass(frozen=True)
class Loss:
    row: Row
    figure: Figure
    reason: str

    def text(self) -> str:
        """The ratio, and whether the result is another one."""
        wrong = "" if self.figure.is_same else ", other bits"
        threads = "" if self.row.threads == 1 else f", {self.row.threads} threads"
        return f"{self.row.name}{threads} {self.figure.ratio:.2f}{wrong}"


def losses(run: Run) -> list[Loss]:
    """The slowest first."""
    found = [Loss(row, figure, reason_of(row, figure)) for row in [*run.timed(), *run.compiles()]
             for figure in row.figures() if figure.ratio < 1]
    return sorted(found, key=lambda loss: loss.figure.ratio)


def by_reason(found: list[Loss]) -> dict[tuple[str, str, str], list[Loss]]:
    """By reason, family and peer; those without a reason first."""
    groups: dict[tuple[str, str, str], list[Loss]] = collections.defaultdict(list)
    for loss in found:
        groups[loss.reason, loss.row.family, loss.figure.peer].append(loss)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0] != UNEXPLAINED, item[0])))
