# SPDX-License-Identifier: Apache-2.0
"""What it costs ONNX Runtime to call a group that castor has taken, beside the group's kernels.

  cd tools && ../build/ort-venv/bin/python -B -m ort.overhead --plugin ABSOLUTE_PATH

A chain of tiny quantized layers is one group; with an Exp after each layer, which castor lacks, each
layer is a group. The difference for each layer, less the Exp's own time, is a call of a group.
"""
import argparse
import pathlib

import numpy as np
import onnxruntime

from . import sessions
from .graph import FLOAT, Graph
from .measure import runner, seconds

SHAPE = [1, 8, 2, 2]
FEW, MANY = 2, 42
ROUNDS, CALLS = 40, 100


def chain(layers: int, has_layers: bool, separators: int) -> bytes:
    """Layers, each with some Exp after it."""
    graph = Graph("chain", seed=0)
    x = graph.input("x", FLOAT, SHAPE)
    weights = graph.constant(graph.random.integers(-63, 64, (8, 8, 1, 1)).astype(np.int8))
    small = graph.scalar(1e-6)
    for _ in range(layers):
        if has_layers:
            codes, _, zero = graph.nodes("DynamicQuantizeLinear", [x], 3)
            sums = graph.node("ConvInteger", codes, weights, zero)
            x = graph.node("Mul", graph.node("Cast", sums, to=FLOAT), small)
        for _ in range(separators):
            x = graph.node("Exp", x)
    graph.output(x, FLOAT, SHAPE)
    return graph.model().SerializeToString()


def microseconds_a_layer(device: onnxruntime.OrtEpDevice, has_layers: bool,
                         separators: int) -> float:
    times = []
    for layers in (FEW, MANY):
        session = sessions.create(chain(layers, has_layers, separators), 1, device)
        run = runner(session, {"x": np.zeros(SHAPE, np.float32)})
        run()
        times.append(min(seconds(run, CALLS) for _ in range(ROUNDS)))
    return (times[1] - times[0]) / (MANY - FEW) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", type=pathlib.Path, required=True)
    device = sessions.castor_device(parser.parse_args().plugin)
    exp = microseconds_a_layer(device, False, 1)
    kernels = microseconds_a_layer(device, True, 0)
    groups = microseconds_a_layer(device, True, 1)
    print(f"ONNX Runtime's own node: {exp:.2f} us; a layer's kernels: {kernels:.2f} us; "
          f"a call of a group: {groups - kernels - exp:.2f} us")


if __name__ == "__main__":
    main()
