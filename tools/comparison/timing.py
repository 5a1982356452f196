# SPDX-License-Identifier: Apache-2.0
"""Times of calls that run in turn."""
from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Mapping

from .tasks import Prepared

PAUSE_SECONDS = 0.001
QUIET = 0.2  # processor time in a pause, over its length
MAX_PAUSES = 100
CLOSE = (0.8, 1.25)  # ratios of which more rounds are measured


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long is measured."""
    rounds: int  # at least
    close_rounds: int  # where a contender is about as fast as castor
    slice_seconds: float
    slow_seconds: float  # calls of more than this are measured in `slow_rounds` rounds
    slow_rounds: int


FULL = Effort(rounds=5, close_rounds=12, slice_seconds=0.002, slow_seconds=0.02, slow_rounds=3)
QUICK = Effort(rounds=3, close_rounds=3, slice_seconds=0.0005, slow_seconds=0.005, slow_rounds=2)


class Contender:
    """A call, and the fastest slice of each round: seconds of one operation."""

    def __init__(self, prepared: Prepared, effort: Effort):
        self._run = prepared.run
        self._operations = prepared.calls_per_run
        self._effort = effort
        self._run()  # what a first call allocates
        once = self._timed(1)
        self._repeat = max(1, min(1000, int(effort.slice_seconds / max(once, 1e-7))))
        self.is_slow = once > effort.slow_seconds
        self.samples: list[float] = []

    def _timed(self, count: int) -> float:
        run = self._run
        begin = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - begin) / count

    def sample(self) -> None:
        """A slice, after a call that brings the tensors into the caches again."""
        if not self.is_slow:
            self._run()
        self.samples.append(self._timed(self._repeat) / self._operations)

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def wait_for_quiet(threads: int) -> None:
    """Until no thread of the process spins for work, which would slow the next call: ONNX Runtime's
    do for 40 ms."""
    for _ in range(MAX_PAUSES if threads > 1 else 0):
        spent, begin = time.process_time(), time.perf_counter()
        time.sleep(PAUSE_SECONDS)
        if time.process_time() - spent < QUIET * (time.perf_counter() - begin):
            return


def in_turn(calls: Mapping[str, Prepared], ours: str, threads: int,
            effort: Effort) -> dict[str, Contender]:
    """All contenders, in turn and in another order each round; those as fast as `ours` longer."""
    contenders = {}
    for name, prepared in calls.items():
        wait_for_quiet(threads)
        contenders[name] = Contender(prepared, effort)

    def round_of(names: list[str], number: int) -> None:
        for name in names if number % 2 == 0 else reversed(names):
            wait_for_quiet(threads)
            contenders[name].sample()

    for number in range(effort.rounds):
        round_of([name for name, each in contenders.items()
                  if number < effort.slow_rounds or not each.is_slow], number)
    mine = contenders[ours].best
    close = [name for name, each in contenders.items()
             if name != ours and CLOSE[0] < each.best / mine < CLOSE[1]]
    if close:
        rounds = effort.close_rounds - effort.rounds
        if contenders[ours].is_slow:
            rounds = min(rounds, effort.slow_rounds)
        for number in range(rounds):
            round_of([ours, *close], number)
    return contenders
