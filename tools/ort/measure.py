# SPDX-License-Identifier: Apache-2.0
"""Measures one model in a process of its own, so that castor's caches are empty and a crash is
that of one model: prints a line of JSON.

  cd tools && ../build/ort-venv/bin/python -B -m ort.measure MODEL.onnx --plugin ABSOLUTE_PATH
"""
import argparse
import json
import pathlib
import statistics
import time
from collections.abc import Callable, Sequence

import onnx
import onnxruntime

from . import difference, sessions
from .graph import FLOAT, Graph
from .inputs import SHAPES, random_inputs

INPUT_SEED = 7
BATCH_SECONDS = 0.004  # short calls are repeated for so long
BATCHES = 5  # in a sample; fewer where they would last longer than SAMPLE_SECONDS
SAMPLE_SECONDS = 0.05
QUIET_SECONDS = 0.01

Pair = tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]


def seconds(run: Callable[[], object], calls: int = 1) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def wait_for_quiet() -> None:
    """Until ONNX Runtime's threads no longer spin for work: 40 ms, and they slow other sessions."""
    spent = QUIET_SECONDS
    while spent > QUIET_SECONDS / 4:
        begin = time.process_time()
        time.sleep(QUIET_SECONDS)
        spent = time.process_time() - begin


class Contestant:
    """What is measured, in batches so short that some are not disturbed by other processes."""

    def __init__(self, run: Callable[[], object]):
        self._run = run
        run()
        once = seconds(run)
        self._calls = max(1, int(BATCH_SECONDS / once))
        self._batches = max(1, min(BATCHES, int(SAMPLE_SECONDS / once)))
        self._samples: list[float] = []

    def sample(self) -> None:
        """The fastest batch."""
        wait_for_quiet()
        self._run()  # wakes the session's threads
        self._samples.append(min(seconds(self._run, self._calls) for _ in range(self._batches)))

    def milliseconds(self) -> float:
        return statistics.median(self._samples) * 1000


def interleaved(runs: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """The median of each, in milliseconds; they run in turn, in another order each round."""
    contestants = [Contestant(run) for run in runs]
    for number in range(repeat):
        for each in contestants if number % 2 == 0 else reversed(contestants):
            each.sample()
    return [each.milliseconds() for each in contestants]


def runner(session: onnxruntime.InferenceSession, inputs: dict) -> Callable[[], object]:
    """A call that copies neither inputs nor outputs."""
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
              for name, array in inputs.items()}
    names = [output.name for output in session.get_outputs()]
    return lambda: session.run_with_ort_values(names, values)


def small_model() -> bytes:
    graph = Graph("small", seed=0)
    y = graph.node("Relu", graph.input("x", FLOAT, [4]))
    graph.output(y, FLOAT, [4])
    return graph.model().SerializeToString()


class Measurement:
    """One model in both kinds of session."""

    def __init__(self, path: pathlib.Path, device: onnxruntime.OrtEpDevice | None):
        self._model = onnx.load(path)
        self._bytes = path.read_bytes()
        self._device = device
        self._scales = difference.output_steps(self._model)
        self.steps = self.own_steps = 0.0

    def creations(self) -> tuple[Pair, list[float]]:
        """Sessions of one thread and the milliseconds that their creation took."""
        # What a process does once is not counted: of the plugin, but not of this model.
        sessions.create(self._bytes, 1)
        sessions.create(small_model(), 1, self._device)
        created, times = [], []
        for device in (None, self._device):
            begin = time.perf_counter()
            created.append(sessions.create(self._bytes, 1, device))
            times.append((time.perf_counter() - begin) * 1000)
        return (created[0], created[1]), times

    def pair(self, threads: int) -> Pair:
        return (sessions.create(self._bytes, threads),
                sessions.create(self._bytes, threads, self._device))

    def compare(self, pair: Pair) -> None:
        """For all shapes; later ones meet kernels that are bound for others."""
        for dimensions in (*SHAPES, SHAPES[0]):
            inputs = random_inputs(self._model, dimensions, INPUT_SEED)
            expected, actual = (sessions.results(each, inputs) for each in pair)
            self.steps = max(self.steps, difference.apart(expected, actual, self._scales))

    def compare_unfused(self, stock: onnxruntime.InferenceSession) -> None:
        unfused = sessions.create(self._bytes, 1, is_fused=False)
        for dimensions in SHAPES:
            inputs = random_inputs(self._model, dimensions, INPUT_SEED)
            expected, actual = (sessions.results(each, inputs) for each in (stock, unfused))
            self.own_steps = max(self.own_steps,
                                 difference.apart(expected, actual, self._scales))

    def times(self, pair: Pair, repeat: int) -> list[float]:
        inputs = random_inputs(self._model, SHAPES[0], INPUT_SEED)
        return interleaved([runner(each, inputs) for each in pair], repeat)

    def run(self, thread_counts: Sequence[int], repeat: int) -> dict:
        pair, creation = self.creations()
        taken, left = sessions.assigned(pair[1]) if self._device else ({}, {})
        if not difference.is_exact(self._model):
            self.compare_unfused(pair[0])
        times = {}
        for threads in thread_counts:
            if threads != 1:
                pair = self.pair(threads)
            self.compare(pair)
            times[threads] = self.times(pair, repeat)
        return {"creation": creation, "times": times, "taken": taken, "left": left,
                "steps": self.steps, "own_steps": self.own_steps,
                "allowed": difference.allowed(self._model, self.own_steps)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--plugin", type=pathlib.Path, help="without it, stock against stock")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    device = sessions.castor_device(given.plugin) if given.plugin else None
    print(json.dumps(Measurement(given.model, device).run(given.threads, given.repeat)))


if __name__ == "__main__":
    main()
