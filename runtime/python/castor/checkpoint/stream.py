# SPDX-License-Identifier: Apache-2.0
"""Computes a file block by block, on several threads, in memory that does not grow with it.

A task is a block of rows of one tensor. Each thread takes the next task, computes it into a buffer
of its own, and writes that to its offset in the file: castor and the system release the GIL.
"""

from __future__ import annotations

import math
import os
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

import numpy as np

from castor.checkpoint.formats.transform import Transform, TwoPassTransform
from castor.checkpoint.journal import Done
from castor.checkpoint.plan import Job, ShardPlan
from castor.checkpoint.progress import Progress
from castor.checkpoint.report import ErrorSum, TensorError
from castor.checkpoint.safetensors import SafetensorsFile
from castor.checkpoint.source import Source
from castor.checkpoint.target import preallocate

if TYPE_CHECKING:
    from castor.checkpoint.formats.transform import Bytes

BLOCK_BYTES = 2 << 20
"""What a task reads or writes, whichever is more. Its output takes about 1 MiB; smaller blocks fit
the second-level cache, but cost more calls: 1 MiB took 1.08 times as long on a Zen 4."""

COPY_BYTES = 4 << 20
"""What a task copies; it goes from the mapped file to the new one without a buffer."""

GROUP_BYTES = 256 << 20
"""Tensors with two passes are taken in groups of this size, which the page cache still has."""


SAVE_SECONDS = 10.0
"""How often what is finished is brought to the disk and told to the journal."""


class Task(NamedTuple):
    """A block of rows of a job; of bytes, where it copies."""

    job: Job
    row: int
    rows: int


def _row_bytes(transform: Transform) -> int:
    """The bytes of the wider side, per row of the weight."""
    sides = (transform.inputs, transform.outputs)
    return max(sum(part.spec.nbytes for part in side) for side in sides) // max(transform.rows, 1)


def block_rows(transform: Transform) -> int:
    """The rows of a task: about BLOCK_BYTES, at least a step."""
    steps = BLOCK_BYTES // max(_row_bytes(transform), 1) // transform.step
    return max(steps, 1) * transform.step


def tasks_of(job: Job) -> List[Task]:
    """All blocks of a job."""
    if job.transform is None:
        total, size = job.specs[0].nbytes, COPY_BYTES
    else:
        total, size = job.transform.rows, block_rows(job.transform)
    return [Task(job, row, min(size, total - row)) for row in range(0, total, size)]


def input_bytes(source: Source, job: Job) -> int:
    """What the tasks of a job read."""
    return sum(source.spec(name).nbytes for name in job.inputs)


def _groups(source: Source, jobs: Iterable[Job]) -> Iterator[List[Job]]:
    """Jobs in order; a group ends where its tensors with two passes exceed GROUP_BYTES."""
    group: List[Job] = []
    held = 0
    for job in jobs:
        group.append(job)
        if isinstance(job.transform, TwoPassTransform):
            held += input_bytes(source, job)
        if held >= GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group


class ShardWriter:
    """Writes the data of one file through the descriptor `file`, but for the tensors `done` before.

    `fused` has the jobs whose largest magnitude counts for a tensor with two passes; they may be of
    other files. `save` makes durable that some tensors are finished.
    """

    def __init__(
        self,
        source: Source,
        plan: ShardPlan,
        file: int,
        threads: int,
        progress: Progress,
        with_errors: bool,
        done: Done,
        fused: Mapping[str, Sequence[Job]],
        save: Callable[[Done], None],
    ) -> None:
        self._source = source
        self._plan = plan
        self._fused = fused
        self._file = file
        self._threads = threads
        self._progress = progress
        self._lock = threading.Lock()
        self._local = threading.local()
        self._stopped = False
        self._maxima: Dict[str, List[float]] = {}
        self._open: Dict[str, int] = {}
        self._errors: Optional[Dict[str, ErrorSum]] = {} if with_errors else None
        self._done = dict(done)
        self._jobs = [job for job in plan.jobs if job.name not in done]
        self._save = save
        self._save_lock = threading.Lock()
        self._saved = time.monotonic()

    def write(self) -> List[TensorError]:
        """The whole file; gives the errors of its converted tensors, if they are wanted."""
        preallocate(self._file, self._plan.nbytes)
        self._write_all(memoryview(self._plan.header), 0)
        finished = [job for job in self._plan.jobs if job.name in self._done]
        self._progress.skip(sum(input_bytes(self._source, job) for job in finished))
        with ThreadPoolExecutor(self._threads) as pool:
            for jobs in _groups(self._source, self._jobs):
                self._find_maxima(pool, jobs)
                for job in jobs:
                    if job.transform is not None:
                        for spec, data in job.transform.constants.items():
                            offset = self._plan.tensors[spec.name].offset
                            self._write_all(memoryview(data), offset)
                self._run(pool, (task for job in jobs for task in self._opened(job)), self._convert)
        return self._results()

    def save(self) -> None:
        """What is finished by now stays, whatever happens."""
        with self._save_lock:
            with self._lock:
                done = dict(self._done)
            if done:
                self._save(done)

    def _finish(self, job: Job) -> None:
        now = time.monotonic()
        with self._lock:
            self._done[job.name] = self._error_of(job)
            is_due = now - self._saved >= SAVE_SECONDS
            if is_due:
                self._saved = now
        if is_due:
            self.save()

    def _error_of(self, job: Job) -> Optional[TensorError]:
        if self._errors is None or job.transform is None or job.transform.error_text is None:
            return None
        count = math.prod(self._source.spec(job.name).shape)
        return self._errors.get(job.name, ErrorSum()).result(job.name, count)

    def _results(self) -> List[TensorError]:
        found = []
        for job in self._plan.jobs:
            # Without elements, a tensor has no task that finishes it.
            error = self._done[job.name] if job.name in self._done else self._error_of(job)
            if error is not None:
                found.append(error)
        return found

    def _find_maxima(self, pool: ThreadPoolExecutor, jobs: List[Job]) -> None:
        two_passes = [job for job in jobs if isinstance(job.transform, TwoPassTransform)]
        asked = {one.name: one for job in two_passes for one in self._fused[job.name]}
        new = [job for name, job in asked.items() if name not in self._maxima]
        self._maxima.update({job.name: [0.0] for job in new})
        self._run(pool, (task for job in new for task in tasks_of(job)), self._maximum)
        for job in new:
            if self._source.home[job.name] != self._plan.name:  # it is not read here again
                self._home(job.name).forget(job.name)
        for job in two_passes:
            assert isinstance(job.transform, TwoPassTransform)
            found = [self._maxima[one.name] for one in self._fused[job.name]]
            # Python's max would depend on the order of NaN and numbers.
            job.transform.set_maximum(float(np.max(np.concatenate(found))))

    def _opened(self, job: Job) -> List[Task]:
        tasks = tasks_of(job)
        self._open[job.name] = len(tasks)
        return tasks

    def _run(
        self, pool: ThreadPoolExecutor, tasks: Iterator[Task], work: Callable[[Task], None]
    ) -> None:
        """All tasks, each on the next free thread; the first failure ends all threads."""

        def loop() -> None:
            while not self._stopped:
                with self._lock:
                    task = next(tasks, None)
                if task is None:
                    return
                work(task)

        futures = [pool.submit(loop) for _ in range(self._threads)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = [one for one in futures if one.done() and one.exception() is not None]
            for one in failed:
                one.result()
        finally:  # after an interruption by the user too
            self._stopped = any(not one.done() for one in futures)
            wait(futures)
        for one in futures:
            one.result()

    def _buffer(self, slot: int, size: int) -> Bytes:
        """Memory of this thread, used again by its next task."""
        slots: Dict[int, Bytes] = self._local.__dict__.setdefault("slots", {})
        if slot not in slots or slots[slot].size < size:
            slots[slot] = np.empty(size, np.uint8)
        return slots[slot][:size]

    def _write_all(self, data: memoryview, offset: int) -> None:
        while data:
            written = os.pwrite(self._file, data, offset)
            data, offset = data[written:], offset + written

    def _inputs(self, task: Task) -> List[Bytes]:
        transform = task.job.transform
        assert transform is not None
        blocks = []
        for name, part in zip(task.job.inputs, transform.inputs):
            begin, end = part.span(task.row, task.rows, transform.rows)
            blocks.append(self._home(name).bytes_of(name)[begin:end])
        return blocks

    def _home(self, name: str) -> SafetensorsFile:
        return self._source.shards[self._source.home[name]]

    def _maximum(self, task: Task) -> None:
        transform = task.job.transform
        assert isinstance(transform, TwoPassTransform)
        found = transform.maximum(self._inputs(task)[0], task.rows)
        with self._lock:
            self._maxima[task.job.name].append(found)

    def _convert(self, task: Task) -> None:
        job = task.job
        if job.transform is None:
            data = self._home(job.name).bytes_of(job.name)[task.row : task.row + task.rows]
            offset = self._plan.tensors[job.name].offset
            self._write_all(data.data, offset + task.row)
            self._progress.add(data.size)
        else:
            self._transform(task, job.transform)
        with self._lock:
            self._open[job.name] -= 1
            last = self._open[job.name] == 0
            if last:
                del self._open[job.name]
        if last:
            for name in job.inputs:
                self._home(name).forget(name)
            self._finish(job)

    def _transform(self, task: Task, transform: Transform) -> None:
        inputs = self._inputs(task)
        outputs: List[Bytes] = []
        offsets: List[int] = []
        for slot, part in enumerate(transform.outputs):
            begin, end = part.span(task.row, task.rows, transform.rows)
            outputs.append(self._buffer(slot, end - begin))
            offsets.append(self._plan.tensors[part.spec.name].offset + begin)
        transform.run(inputs, outputs, task.rows)
        for output, offset in zip(outputs, offsets):
            self._write_all(output.data, offset)
        if self._errors is not None and transform.error_text is not None:
            error = transform.error(inputs, outputs, task.rows)
            with self._lock:
                self._errors.setdefault(task.job.name, ErrorSum()).add(error)
        self._progress.add(sum(block.size for block in inputs))
