# SPDX-License-Identifier: Apache-2.0
"""Random inputs for a model."""
import numpy as np
import onnx
from onnx import helper

# Dynamic dimensions by name: those that are timed, and others for results alone.
SHAPES = ({"batch": 1, "sequence": 128}, {"batch": 2, "sequence": 77})


def extents(value: onnx.ValueInfoProto, dimensions: dict[str, int]) -> list[int]:
    return [dimensions[each.dim_param] if each.dim_param else each.dim_value
            for each in value.type.tensor_type.shape.dim]


def random_inputs(model: onnx.ModelProto, dimensions: dict[str, int],
                  seed: int) -> dict[str, np.ndarray]:
    """Normally distributed floats, all values of 8-bit integers, and masks of 0 and 1 in i64."""
    random = np.random.default_rng(seed)
    arrays = {}
    for value in model.graph.input:
        element = np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        shape = extents(value, dimensions)
        if element.kind == "f":
            array = random.normal(size=shape)
        elif element.itemsize == 1:
            array = random.integers(np.iinfo(element).min, np.iinfo(element).max + 1, shape)
        else:
            array = random.integers(0, 2, shape)
        arrays[value.name] = array.astype(element)
    return arrays
