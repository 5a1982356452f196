# SPDX-License-Identifier: Apache-2.0
"""Measures the tasks of families, and writes what it found of each as JSON.

  build/peers-venv/bin/python -m comparison.measure conversions --threads 1 --output {}.json
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator

import castor
import numpy as np

from . import castor_side, checks, peers, timing
from .families import (
    blocks,
    compile_time,
    conversions,
    convolutions,
    elementwise,
    products,
    quantization,
    start_up,
)
from .peers.base import Peer
from .tasks import SPOILED, Lacking, Prepared, Task, forget_memory, spoil_memory

FAMILIES: dict[str, Callable[[bool], Iterator[Task]]] = {
    "conversions": conversions.tasks, "small_conversions": conversions.small_tasks,
    "elementwise": elementwise.tasks,
    "conv_integer": convolutions.integer_tasks, "qlinear_conv": convolutions.qlinear_tasks,
    "matmul_integer": products.tasks, "dynamic_quantization": quantization.tasks,
    "blocks": blocks.tasks}
TOO_SLOW = ("torch.compile",)  # for the short form: a compiler runs for each chain
ONCE = {"compile_time": compile_time.measured, "start_up": start_up.measured}


@contextlib.contextmanager
def separate_processors(threads: int) -> Iterator[None]:
    """The calling thread on the first CPU, castor's workers on the others: where other processes
    run, a worker that was asleep may be woken on the caller's CPU and stay there. Peers' threads
    spin, and find theirs."""
    if threads == 1:
        yield
        return
    cpus = sorted(os.sched_getaffinity(0))
    for worker in castor_side.workers:
        os.sched_setaffinity(worker, cpus[1:])
    os.sched_setaffinity(0, cpus[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


class Measurement:
    """One task: castor in every form that a peer needs, and each peer that has it."""

    def __init__(self, task: Task, threads: int, effort: timing.Effort):
        self._task, self._threads, self._effort = task, threads, effort
        self._castor: dict[str, Prepared] = {}
        self._expected: dict[str, list[np.ndarray]] = {}
        forget_memory()
        self._peers: dict[str, Prepared] = {}
        self._record: dict = {"family": task.family, "name": task.name, "threads": threads,
                              "work": task.work, "unit": task.unit, "castor": {}, "peers": {}}
        self._add_castor("")

    def _add_castor(self, form: str) -> None:
        if form not in self._castor:
            function = self._task.function(form)
            self._castor[form] = castor_side.prepare(function, form, self._threads)
            spoil_memory()
            self._castor[form].run()
            self._expected[form] = [data.copy() for data in self._castor[form].results()]

    def add(self, peer: Peer) -> None:
        """What the peer has; its result is compared before anything is timed."""
        entry: dict = {}
        self._record["peers"][peer.name] = entry
        if self._threads > 1 and not peer.is_threaded:
            entry["lacks"] = "one thread"
            return
        try:
            prepared = peer.prepare(self._task)
            spoil_memory()
            prepared.run()
            found = [data.copy() for data in prepared.results()]
        except Lacking as lack:
            entry["lacks"] = str(lack)
            return
        except Exception as failure:  # peers have classes of their own; the report shows it
            entry["failed"] = f"{type(failure).__name__}: {failure}"[:200]
            return
        if all((data == SPOILED).all() for data in found):
            entry["broken"] = "stores nothing"
            return
        self._add_castor(prepared.form)
        specs = self._task.function(prepared.form).outputs
        differs = checks.difference(found, self._expected[prepared.form], specs)
        entry |= {"form": prepared.form, "note": prepared.note, "differs": differs}
        self._peers[peer.name] = prepared

    def record(self) -> dict:
        """Times of all in turn."""
        with separate_processors(self._threads):
            return self._timed()

    def _timed(self) -> dict:
        calls = {f"castor {form}": prepared for form, prepared in self._castor.items()}
        calls |= self._peers
        found = timing.in_turn(calls, "castor ", self._threads, self._effort)
        for form in self._castor:
            each = found[f"castor {form}"]
            self._record["castor"][form] = {"best": each.best, "median": each.median}
        for name in self._peers:
            self._record["peers"][name] |= {"best": found[name].best, "median": found[name].median}
        return self._record


def measured(family: str, threads: int, quick: bool, pattern: str,
             chosen: list[Peer]) -> Iterator[dict]:
    effort = timing.QUICK if quick else timing.FULL
    for task in FAMILIES[family](quick):
        if not re.search(pattern, task.name):
            continue
        each = Measurement(task, threads, effort)
        for peer in chosen:
            each.add(peer)
        yield each.record()


def write_part(path: pathlib.Path, records: list[dict], chosen: list[Peer],
               missing: dict[str, str]) -> None:
    """What a family's measurement found, whole or not at all."""
    part = {"records": records, "missing": missing, "castor": castor.info()["version"],
            "tier": castor.info()["isa"],
            "versions": {peer.name: peer.version for peer in chosen}}
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(part), encoding="utf-8")
    temporary.replace(path)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="comparison.measure", description=__doc__)
    parser.add_argument("families", nargs="+", choices=[*FAMILIES, *ONCE])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tasks", default="", help="a regular expression of names")
    parser.add_argument("--peers", default="", help="a regular expression of names")
    parser.add_argument("--output", required=True,
                        help="files, whose name has {} for that of the family")
    return parser.parse_args()


def main() -> None:
    given = read_arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:given.threads])
    np.seterr(all="ignore")
    chosen, missing = peers.available(given.threads)
    chosen = [peer for peer in chosen if re.search(given.peers, peer.name)
              and not (given.quick and peer.name in TOO_SLOW)]
    for family in given.families:
        if family in ONCE:
            records = ONCE[family](chosen, given.threads, given.quick)
        else:
            records = measured(family, given.threads, given.quick, given.tasks, chosen)
        write_part(pathlib.Path(given.output.format(family)), list(records), chosen, missing)


if __name__ == "__main__":
    main()
