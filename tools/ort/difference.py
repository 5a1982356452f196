# SPDX-License-Identifier: Apache-2.0
"""How far results are apart, and how far they may be.

A model whose nodes all have one defined result must give the same bits. ONNX Runtime itself does
not, with its fusions and without, where floats are summed in another order or statically quantized
nodes are computed as one: there differences are counted in steps of the output.
"""
import math
import sys

import numpy as np
import onnx
from onnx import numpy_helper

# Sums of floats, and what fusions compute in another way.
ROUNDED_FREELY = {"Conv", "MatMul", "Gemm", "Erf", "LayerNormalization"}
# Static quantization: ONNX Runtime fuses DequantizeLinear, a node and QuantizeLinear.
STATIC = {"DequantizeLinear", "QGemm"}


def is_exact(model: onnx.ModelProto) -> bool:
    ops = {node.op_type for node in model.graph.node}
    return not ops & (ROUNDED_FREELY | STATIC) and not any(op.startswith("QLinear") for op in ops)


def output_steps(model: onnx.ModelProto) -> dict[str, float]:
    """The scale of each output that a DequantizeLinear with a constant scale writes."""
    constants = {each.name: each for each in model.graph.initializer}
    outputs = {output.name for output in model.graph.output}
    return {node.output[0]: float(np.max(numpy_helper.to_array(constants[node.input[1]])))
            for node in model.graph.node
            if node.op_type == "DequantizeLinear" and node.output[0] in outputs
            and node.input[1] in constants}


def step_of(array: np.ndarray, scale: float | None) -> float:
    """Its scale, 1 for 8-bit integers, else the range of its values in 255 parts."""
    if scale is not None or array.itemsize == 1:
        return scale or 1.0
    extent = float(array.max()) - float(array.min()) if array.size else 0.0
    return extent / 255 or 1.0


def distance(expected: np.ndarray, actual: np.ndarray, scale: float | None) -> float:
    """The largest difference in steps; 0 only where all bits are the same."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return math.inf
    if expected.tobytes() == actual.tobytes():
        return 0.0
    difference = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
    steps = float(np.max(difference)) / step_of(expected, scale)
    # Zeros of different signs are different bits, and NaN is far from everything.
    return math.inf if math.isnan(steps) else steps or sys.float_info.min


def apart(expected: dict[str, np.ndarray], actual: dict[str, np.ndarray],
          scales: dict[str, float]) -> float:
    """The largest difference of any output."""
    return max(distance(array, actual[name], scales.get(name))
               for name, array in expected.items())


def allowed(model: onnx.ModelProto, own: float) -> float:
    """Steps; `own` is how far ONNX Runtime without its fusions is from itself.

    Its own operators, as QLinearAdd, have no specification that says how sums are rounded: there
    is nothing unfused to compare with, and a step early in a model grows to a few.
    """
    if is_exact(model):
        return 0.0
    has_own_operators = any(node.domain == "com.microsoft" for node in model.graph.node)
    return (4 if has_own_operators else 1) + 2 * own
