# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph in the making."""
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8  # the one that came with opset 17

Extent = int | str  # a number, or the name of a dynamic dimension
FLOAT, U8, I8, I32, I64 = (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8,
                           TensorProto.INT32, TensorProto.INT64)


class Graph:
    """Nodes in the order of their making; every value is named by what it is and a number."""

    def __init__(self, name: str, seed: int):
        self.name = name
        self.random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._domains: set[str] = set()
        self._count = 0

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def input(self, name: str, element: int, shape: Sequence[Extent]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, value: str, element: int, shape: Sequence[Extent]) -> None:
        self._outputs.append(helper.make_tensor_value_info(value, element, shape))

    def constant(self, array: np.ndarray, stem: str = "constant") -> str:
        name = self._fresh(stem)
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def scalar(self, value: float, element: type = np.float32) -> str:
        return self.constant(np.array(value, element), "scalar")

    def normal(self, shape: Sequence[int], deviation: float, stem: str = "weight") -> str:
        """A constant of normally distributed f32."""
        return self.constant(self.random.normal(0, deviation, shape).astype(np.float32), stem)

    def nodes(self, op: str, inputs: Sequence[str], outputs: int, domain: str = "",
              **attributes) -> list[str]:
        """Appends a node of several outputs, whose names are returned."""
        self._domains.add(domain)
        names = [self._fresh(op) for _ in range(outputs)]
        self._nodes.append(helper.make_node(op, list(inputs), names, name=f"{names[0]}_node",
                                            domain=domain, **attributes))
        return names

    def node(self, op: str, *inputs: str, domain: str = "", **attributes) -> str:
        return self.nodes(op, inputs, 1, domain, **attributes)[0]

    def model(self) -> onnx.ModelProto:
        opsets = [helper.make_opsetid(domain, OPSET if domain == "" else 1)
                  for domain in sorted(self._domains | {""})]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs,
                                  self._constants)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION,
                                  producer_name="castor")
        onnx.checker.check_model(model)
        return model
