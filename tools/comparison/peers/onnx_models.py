# SPDX-License-Identifier: Apache-2.0
"""Tasks as models of ONNX, for the peers that read them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper

from ..tasks import Lacking, Spec, Tensor

OPSET = 25
IR_VERSION = 12
NUMBERS = {"boolean": "BOOL", "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT",
           "f64": "DOUBLE", "u2": "UINT2", "i2": "INT2", "u4": "UINT4", "i4": "INT4",
           "u8": "UINT8", "i8": "INT8", "u16": "UINT16", "i16": "INT16", "u32": "UINT32",
           "i32": "INT32", "u64": "UINT64", "i64": "INT64", "f8e4m3": "FLOAT8E4M3FN",
           "f8e4m3fnuz": "FLOAT8E4M3FNUZ", "f8e5m2": "FLOAT8E5M2",
           "f8e5m2fnuz": "FLOAT8E5M2FNUZ", "f8e8m0": "FLOAT8E8M0", "f4e2m1": "FLOAT4E2M1"}


def number_of(element: str) -> int:
    """ONNX's number of a type."""
    if element not in NUMBERS:
        raise Lacking(f"ONNX has no {element}")
    return TensorProto.DataType.Value(NUMBERS[element])


def initializer(name: str, tensor: Tensor) -> TensorProto:
    return helper.make_tensor(name, number_of(tensor.element), tensor.shape,
                              tensor.data.tobytes(), raw=True)


def value(name: str, spec: Spec) -> Any:
    return helper.make_tensor_value_info(name, number_of(spec.element), spec.shape)


def model_of(nodes: Sequence[NodeProto], inputs: dict[str, Tensor], outputs: dict[str, Spec],
             constants: dict[str, Tensor] | None = None, opset: int = OPSET) -> bytes:
    """A model whose inputs and outputs have known shapes."""
    graph = helper.make_graph(list(nodes), "task", [value(*pair) for pair in inputs.items()],
                              [value(*pair) for pair in outputs.items()],
                              [initializer(*pair) for pair in (constants or {}).items()])
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                          ir_version=IR_VERSION)
    checker.check_model(model)
    return model.SerializeToString()


def scalar(value_: float, element: str) -> Tensor:
    dtype = {"f32": np.float32, "u8": np.uint8, "i8": np.int8, "i64": np.int64}[element]
    return Tensor.of(np.asarray(value_, dtype))
