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


def cold_and_warm(creations: list[Callable[[], object]]) -> dict[str, float]:
    """Medians over what is created: first times, and the best of later ones."""
    first, later = [], []
    for create in creations:
        first.append(seconds(create))
        later.append(min(seconds(create) for _ in range(WARM)))
        if first[-1] > SLOW_SECONDS and len(first) == SLOW_TASKS:
            break
    return {"cold": statistics.median(first), "warm": statistics.median(later),
            "count": len(first)}


def peer_creations(peer: Peer, tasks: list[Task]) -> list[Callable[[], object]]:
    made = []
    for task in tasks:
        try:
            made.append(peer.creation(task))
        except Lacking:
            continue
    return made


def measured(chosen: list[Peer], threads: int, quick: bool) -> Iterator[dict]:
    for name, tasks in groups(quick).items():
        ours = cold_and_warm([creation(task.function("")) for task in tasks])
        record: dict = {"family": FAMILY, "name": name, "threads": threads, "castor": {"": ours},
                        "peers": {}}
        for peer in chosen:
            creations = peer_creations(peer, tasks)
            record["peers"][peer.name] = (cold_and_warm(creations) if creations
                                          else {"lacks": "compiles nothing of this kind"})
        yield record
