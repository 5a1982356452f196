# SPDX-License-Identifier: Apache-2.0
"""Whether two runs rank castor and the peers alike."""
from __future__ import annotations

import dataclasses

from .rows import Row, Run

TIE = 0.05  # ratios this close to 1 are no order


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Orders of castor and a peer for a task, by threads: how many are alike, and those that are
    not."""
    alike: dict[int, int]
    turned: dict[int, list[str]]


def order(ratio: float) -> int:
    """1 where castor is faster, -1 where the peer is, 0 where neither."""
    if ratio > 1 + TIE:
        return 1
    return -1 if ratio < 1 / (1 + TIE) else 0


def key(row: Row) -> tuple:
    return row.family, row.name, row.threads


def agreement(one: Run, other: Run) -> Agreement:
    """Orders turn where one run has castor faster and the other the peer, both beyond a tie."""
    rows = {key(row): row for row in other.timed()}
    alike, turned = ({threads: 0 for threads in one.threads()},
                     {threads: [] for threads in one.threads()})
    for row in one.timed():
        if key(row) not in rows:
            continue
        for figure in row.figures():
            second = rows[key(row)].figure(figure.peer)
            if second is None:
                continue
            if order(figure.ratio) * order(second.ratio) < 0:
                turned[row.threads].append(f"{row.family}, {row.name}, {figure.peer} "
                                           f"{figure.ratio:.2f} and {second.ratio:.2f}")
            else:
                alike[row.threads] += 1
    return Agreement(alike, turned)
