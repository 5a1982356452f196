# SPDX-License-Identifier: Apache-2.0
"""From a description to something that can be run, for functions not met before, and once more.

castor parses a text, compiles and binds it; peers read a model, make a primitive, or compile.
Weights are packed in all of them.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from ..castor_side import creation
from ..peers.base import Peer
from ..tasks import Lacking, Task
from . import conversions, convolutions, elementwise, products

FAMILY = "compile time"
TYPES = ("u8", "i8", "i32", "f16", "bf16", "f32")
ELEMENTS = 4096
WARM = 5
SLOW_SECONDS = 0.5  # what takes longer is not made for every task
SLOW_TASKS = 2


def groups(quick: bool) -> dict[str, list[Task]]:
    """Tasks of one kind, of which the median counts."""
    pairs = [conversions.task(source, target, ELEMENTS) for source in TYPES for target in TYPES
             if source != target]
    layers = [task for task in convolutions.integer_tasks(quick)
              if task.name.endswith("u8 x i8") and task.details["operands"].layer.axes == 2]
    rows = [task for task in products.tasks(quick) if task.name.endswith("u8 x i8")]
    made = {"conversion": pairs[:4] if quick else pairs,
            "elementwise chain": list(elementwise.tasks(True)),
            "convolution": layers, "matrix product": rows[:2] if quick else rows[:12]}
    return {name: tasks[:3] if quick else tasks for name, tasks in made.items()}


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    made = call()
    spent = time.perf_counter() - begin
    del made
    return spent


def times_of(creations: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """By name of the task, the first time and the best of later ones."""
    found: dict[str, tuple[float, float]] = {}
    for name, create in creations.items():
        first = seconds(create)
        found[name] = first, min(seconds(create) for _ in range(WARM))
        if first > SLOW_SECONDS and len(found) == SLOW_TASKS:
            break
    return found


def peer_creations(peer: Peer, tasks: list[Task]) -> dict[str, Callable[[], object]]:
    made = {}
    for task in tasks:
        try:
            made[task.name] = peer.creation(task)
        except Lacking:
            continue
    return made


def medians(found: dict[str, tuple[float, float]],
            ours: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Of a peer, and of castor for the same tasks."""
    return {"cold": statistics.median(first for first, _ in found.values()),
            "warm": statistics.median(later for _, later in found.values()),
            "castor_cold": statistics.median(ours[name][0] for name in found),
            "castor_warm": statistics.median(ours[name][1] for name in found),
            "count": len(found)}


def measured(chosen: list[Peer], threads: int, quick: bool) -> Iterator[dict]:
    for name, tasks in groups(quick).items():
        ours = times_of({task.name: creation(task.function("")) for task in tasks})
        record: dict = {"family": FAMILY, "name": name, "threads": threads, "castor": {},
                        "peers": {}}
        for peer in chosen:
            found = times_of(peer_creations(peer, tasks))
            record["peers"][peer.name] = (medians(found, ours) if found
                                          else {"lacks": "compiles nothing of this kind"})
        yield record
