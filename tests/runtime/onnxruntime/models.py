# SPDX-License-Identifier: Apache-2.0
"""Small models of quantized operators for the tests of the plugin."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, U8, I8, I32, I64 = (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8,
                         TensorProto.INT32, TensorProto.INT64)


class Model:
    """A graph that grows node by node; values are named by the nodes that compute them."""

    def __init__(self, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.opset = opset
        self.random = np.random.default_rng(11)

    def input(self, name: str, shape: list, kind: int = F32) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, shape: list | None, kind: int = F32) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, array: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op_type: str, inputs: list[str], outputs: int = 1, **attributes):
        names = [f"{op_type}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=f"n{len(self.nodes)}",
                                           **attributes))
        return names[0] if outputs == 1 else names

    def weights(self, *shape: int, kind: type = np.int8) -> str:
        """Small enough that sums of pairs fit 16 bits on CPUs without VNNI."""
        low, high = (-63, 64) if kind is np.int8 else (65, 192)
        return self.constant(self.random.integers(low, high, shape).astype(kind))

    def layer(self, x: str, channels: int, filters: int, group: int = 1, kind: type = np.int8,
              kernel: int = 3) -> str:
        """x quantized by its range, convolved, and back in f32, with a bias."""
        quantized, scale, zero = self.add("DynamicQuantizeLinear", [x], 3)
        w = self.weights(filters, channels // group, kernel, kernel, kind=kind)
        w_zero = self.constant(np.array(0 if kind is np.int8 else 128, kind))
        pad = kernel // 2
        total = self.add("ConvInteger", [quantized, w, zero, w_zero], group=group, pads=[pad] * 4)
        real = self.add("Cast", [total], to=F32)
        scales = self.add("Mul", [scale, self.constant(np.float32(0.01))])
        scaled = self.add("Mul", [real, scales])
        bias = self.random.standard_normal((1, filters, 1, 1)).astype(np.float32)
        return self.add("Add", [scaled, self.constant(bias)])

    def serialized(self) -> bytes:
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def one_layer(batch: int | str = 1) -> bytes:
    model = Model()
    y = model.add("Relu", [model.layer(model.input("x", [batch, 8, 14, 14]), 8, 16)])
    model.output(y, [batch, 16, 14, 14])
    return model.serialized()


def network(pool: str = "MaxPool") -> bytes:
    """Depthwise, pointwise and dense layers, a residual, and a pool in between."""
    model = Model()
    x = model.add("Relu", [model.layer(model.input("x", ["n", 16, 28, 28]), 16, 32)])
    x = model.add(pool, [x], kernel_shape=[2, 2], strides=[2, 2])
    y = model.add("Relu", [model.layer(x, 32, 32, group=32)])
    z = model.layer(y, 32, 32, kernel=1, kind=np.uint8)
    model.output(model.add("Relu", [model.add("Add", [z, x])]), ["n", 32, 14, 14])
    return model.serialized()


def outputs_inside() -> bytes:
    """Values within the group are outputs of the graph: the sum, the scale, the result."""
    model = Model()
    x = model.input("x", [1, 8, 14, 14])
    quantized, scale, zero = model.add("DynamicQuantizeLinear", [x], 3)
    total = model.add("ConvInteger", [quantized, model.weights(8, 8, 1, 1), zero])
    model.output(total, [1, 8, 14, 14], I32)
    model.output(scale, [])
    model.output(model.add("Mul", [model.add("Cast", [total], to=F32), scale]), [1, 8, 14, 14])
    return model.serialized()


def not_convex() -> bytes:
    """A path from the convolution to the last Add goes through Exp, which castor has not."""
    model = Model()
    total = model.layer(model.input("x", [1, 8, 14, 14]), 8, 8)
    small = model.add("Mul", [total, model.constant(np.float32(0.001))])
    model.output(model.add("Add", [small, model.add("Exp", [small])]), [1, 8, 14, 14])
    return model.serialized()


def constant_that_is_an_input() -> bytes:
    """The weights may be overridden, so they are no constant."""
    model = Model()
    x = model.input("x", [1, 8, 14, 14])
    quantized, _, zero = model.add("DynamicQuantizeLinear", [x], 3)
    w = model.weights(8, 8, 3, 3)
    model.inputs.append(helper.make_tensor_value_info(w, I8, [8, 8, 3, 3]))
    model.output(model.add("ConvInteger", [quantized, w, zero]), [1, 8, 12, 12], I32)
    return model.serialized()


def body_of_if() -> bytes:
    """A layer inside a branch, which reads a value of the graph around it."""
    model = Model()
    x = model.add("Abs", [model.input("x", [1, 8, 14, 14])])
    branches = {}
    for name, filters in (("then_branch", 8), ("else_branch", 8)):
        inner = Model()
        y = inner.layer(x, 8, filters)
        inner.output(y, [1, 8, 14, 14])
        for node in inner.nodes:
            node.name = f"{name}_{node.name}"
        branches[name] = helper.make_graph(inner.nodes, name, [], inner.outputs, inner.constants)
    condition = model.add("Greater", [model.add("ReduceMax", [x], keepdims=0),
                                      model.constant(np.float32(1))])
    model.output(model.add("If", [condition], **branches), [1, 8, 14, 14])
    return model.serialized()


def function_beside_a_layer(name: str, activation: str = "Exp") -> bytes:
    """A function of the model, of one input, before a layer."""
    model = Model()
    x = model.input("x", [1, 8, 14, 14])
    model.nodes.append(helper.make_node(name, [x], ["called"], domain="acme"))
    model.output(model.add(activation, [model.layer("called", 8, 8)]), [1, 8, 14, 14])
    made = onnx.ModelProto.FromString(model.serialized())
    body = helper.make_node("Exp", ["a"], ["b"])
    opsets = [helper.make_opsetid("", model.opset)]
    made.functions.append(helper.make_function("acme", name, ["a"], ["b"], [body], opsets))
    made.opset_import.append(helper.make_opsetid("acme", 1))
    return made.SerializeToString()


def path_through_a_constant(kind: str) -> bytes:
    """A layer whose result meets what follows from its type alone."""
    model = Model()
    real = model.add("Relu", [model.layer(model.input("x", [1, 8, 14, 14]), 8, 8)])
    if kind == "Size":
        count = model.add("Cast", [model.add("Size", [real])], to=F32)
        result = model.add("Div", [real, count])
    elif kind == "CastLike":
        number = model.add("CastLike", [model.constant(np.array(3, np.int32)), real])
        result = model.add("Mul", [model.add("Neg", [real]), number])
    else:
        result = model.add("Expand", [model.add("Neg", [real]), model.add("Shape", [real])])
    model.output(result, [1, 8, 14, 14])
    return model.serialized()


def unit_beside_a_reader(is_output: bool) -> bytes:
    """A quantized depthwise convolution whose dequantized input is read by others as well."""
    model = Model(opset=13)
    x = model.input("x", [1, 16, 14, 14], U8)
    scale, zero = model.constant(np.float32(0.02)), model.constant(np.array(128, np.uint8))
    real = model.add("DequantizeLinear", [x, scale, zero])
    w = model.add("DequantizeLinear",
                  [model.weights(16, 1, 3, 3), model.constant(np.float32(0.01)),
                   model.constant(np.array(0, np.int8))])
    total = model.add("Conv", [real, w], group=16, pads=[1] * 4)
    y = model.add("QuantizeLinear", [total, model.constant(np.float32(0.03)), zero])
    model.output(y, [1, 16, 14, 14], U8)
    model.output(real if is_output else model.add("Exp", [real]), [1, 16, 14, 14])
    return model.serialized()


def pow_of_another_rank() -> bytes:
    """A layer, and beside it a square whose exponent has more axes than its base."""
    model = Model()
    model.output(model.layer(model.input("x", [1, 8, 14, 14]), 8, 8), [1, 8, 14, 14])
    base = model.constant(np.float32([1, 2, 3]))
    base = model.add("Add", [base, model.add("ReduceMax", ["x"], keepdims=0)])
    model.output(model.add("Pow", [base, model.constant(np.full((1, 1), 2, np.float32))]), [1, 3])
    return model.serialized()


def branches_of_equal_names(differ: bool) -> bytes:
    """Two branches whose values have the same names."""
    model = Model()
    x = model.add("Abs", [model.input("x", [1, 8, 14, 14])])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = Model()
        if differ and name == "else_branch":
            inner.random = np.random.default_rng(12)
        inner.output(inner.layer(x, 8, 8), [1, 8, 14, 14])
        for node in inner.nodes:
            node.name = f"{name}_{node.name}"
        branches[name] = helper.make_graph(inner.nodes, name, [], inner.outputs, inner.constants)
    condition = model.add("Greater", [model.add("ReduceMax", [x], keepdims=0),
                                      model.constant(np.float32(1))])
    model.output(model.add("If", [condition], **branches), [1, 8, 14, 14])
    return model.serialized()


def unknown_rank() -> bytes:
    model = Model()
    model.inputs.append(helper.make_tensor_value_info("x", F32, None))
    model.output(model.layer("x", 8, 8), None)
    return model.serialized()


def nothing_to_claim() -> bytes:
    model = Model()
    x = model.input("x", [1, 8, 14, 14])
    model.output(model.add("Exp", [model.add("Neg", [x])]), [1, 8, 14, 14])
    return model.serialized()


def embedded(same_names: bool) -> bytes:
    """A quantized product of tokens, to which positions of other extents may be added."""
    model = Model()
    x = model.input("x", ["batch", "tokens", 32])
    names = ["batch", "tokens"] if same_names else ["one", "more"]
    position = model.input("position", [*names, 48])
    q, scale, zero = model.add("DynamicQuantizeLinear", [x], 3)
    weights = model.constant(model.random.integers(0, 255, (32, 48)).astype(np.uint8))
    total = model.add("Cast", [model.add("MatMulInteger", [q, weights, zero])], to=F32)
    y = model.add("Relu", [model.add("Add", [model.add("Mul", [total, scale]), position])])
    model.output(y, None)
    return model.serialized()


def sides(a: str, b: str) -> bytes:
    """A layer of an image whose sides have these names."""
    model = Model()
    y = model.add("Relu", [model.layer(model.input("x", ["n", 8, a, b]), 8, 16)])
    model.output(y, None)
    return model.serialized()


def unit_of_opset(opset: int, op_type: str) -> bytes:
    """DequantizeLinear, a product, QuantizeLinear, with scales of tensors as opset 10 has them."""
    model = Model(opset)
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(128, np.uint8)
    is_conv = op_type == "Conv"
    q = model.input("x", ["n", 3, 14, 14] if is_conv else ["n", 64], U8)
    x = model.add("DequantizeLinear", [q, scale, zero])
    w = model.weights(16, 3, 3, 3) if is_conv else model.weights(64, 48)
    w = model.add("DequantizeLinear", [w, one(0.01, np.float32), one(0, np.int8)])
    y = model.add("QuantizeLinear", [model.add(op_type, [x, w]), scale, zero])
    model.output(y, None, U8)
    return model.serialized()


def unit_of_floats(depthwise: bool) -> bytes:
    """DequantizeLinear, Conv, Relu, QuantizeLinear."""
    model = Model()
    group = 16 if depthwise else 1
    x = model.input("x", ["n", 16, 14, 14])
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    x_scale, x_zero = one(0.02, np.float32), one(128, np.uint8)
    q = model.add("QuantizeLinear", [x, x_scale, x_zero])
    real = model.add("DequantizeLinear", [q, x_scale, x_zero])
    scales = (0.002 + 0.001 * model.random.random(16)).astype(np.float32)
    w = model.add("DequantizeLinear", [model.weights(16, 16 // group, 3, 3),
                                       model.constant(scales),
                                       model.constant(np.zeros(16, np.int8))], axis=0)
    bias = model.random.integers(-2000, 2000, 16).astype(np.int32)
    b = model.add("DequantizeLinear", [model.constant(bias),
                                       model.constant(scales * np.float32(0.02))], axis=0)
    y = model.add("Relu", [model.add("Conv", [real, w, b], group=group, pads=[1, 1, 1, 1])])
    y_scale, y_zero = one(0.03, np.float32), one(0, np.uint8)
    y = model.add("QuantizeLinear", [y, y_scale, y_zero])
    model.output(model.add("DequantizeLinear", [y, y_scale, y_zero]), ["n", 16, 14, 14])
    return model.serialized()


def product(kind: type, depth: int, columns: int) -> bytes:
    """x quantized by its range, times a matrix of weights."""
    model = Model()
    quantized, scale, zero = model.add("DynamicQuantizeLinear",
                                       [model.input("x", ["n", depth])], 3)
    w_zero = model.constant(np.array(0 if kind is np.int8 else 128, kind))
    w = model.weights(depth, columns, kind=kind)
    total = model.add("MatMulInteger", [quantized, w, zero, w_zero])
    real = model.add("Mul", [model.add("Cast", [total], to=F32), scale])
    model.output(real, ["n", columns])
    return model.serialized()


def quantized_product() -> bytes:
    """QLinearMatMul with what it is quantized from and to."""
    model = Model()
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(128, np.uint8)
    q = model.add("QuantizeLinear", [model.input("x", ["n", 64]), scale, zero])
    y = model.add("QLinearMatMul", [q, scale, zero, model.weights(64, 48), one(0.01, np.float32),
                                    one(0, np.int8), scale, zero])
    model.output(model.add("DequantizeLinear", [y, scale, zero]), ["n", 48])
    return model.serialized()


def pool_after_convolution(form: str, indices: bool = False) -> bytes:
    """A quantized pool between a dense convolution and a depthwise one, both as QLinearConv; in
    the form `floats`, the pool is one of floats between DequantizeLinear and QuantizeLinear. Its
    indices are a result, too, if they are wanted."""
    model = Model()
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(128, np.uint8)

    def convolution(x: str, group: int) -> str:
        return model.add("QLinearConv", [x, scale, zero, model.weights(16, 16 // group, 3, 3),
                                         one(0.01, np.float32), one(0, np.int8), scale, zero],
                         group=group, pads=[1] * 4)

    x = convolution(model.input("x", [1, 16, 28, 28], U8), 1)
    if form == "floats":
        x = model.add("DequantizeLinear", [x, scale, zero])
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if indices:
        x, positions = model.add("MaxPool", [x], 2, **pool)
        model.output(positions, [1, 16, 14, 14], I64)
    else:
        x = model.add("MaxPool", [x], **pool)
    if form == "floats":
        x = model.add("QuantizeLinear", [x, scale, zero])
    model.output(convolution(x, 16), [1, 16, 14, 14], U8)
    return model.serialized()


def pool_of_codes(extents: list, kind: type = np.uint8, opset: int = 17, **attributes) -> bytes:
    """A pool after a quantized convolution of one position, of any number of spatial axes."""
    model = Model(opset)
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(3, kind)
    x = model.input("x", [1, 3, *extents], U8 if kind is np.uint8 else I8)
    w = model.weights(4, 3, *[1] * len(extents))
    x = model.add("QLinearConv", [x, scale, zero, w, one(0.01, np.float32), one(0, np.int8),
                                  scale, zero])
    model.output(model.add("MaxPool", [x], **attributes), None, U8 if kind is np.uint8 else I8)
    return model.serialized()


def pool_of_a_layer(extents: list, **attributes) -> bytes:
    """A pool of floats after a layer, whose indices have a name and no reader."""
    model = Model()
    x = model.layer(model.input("x", [2, 4, *extents]), 4, 8)
    model.output(model.add("MaxPool", [x], 2, **attributes)[0], None)
    return model.serialized()


def pools_of_floats() -> bytes:
    """Pools without a product of integers: after a convolution, its activation, and alone."""
    model = Model()
    x = model.input("x", [1, 8, 14, 14])
    w = model.constant(model.random.standard_normal((8, 8, 3, 3)).astype(np.float32))
    pool = {"kernel_shape": [2, 2]}
    y = model.add("MaxPool", [model.add("Conv", [x, w])], **pool)
    y = model.add("MaxPool", [model.add("Relu", [model.add("Conv", [y, w])])], **pool)
    model.output(y, None)
    model.output(model.add("MaxPool", [x], **pool), None)
    return model.serialized()


def stem(channels: int, kernel: int) -> bytes:
    """A dense quantized convolution of an image of so few channels."""
    model = Model()
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(128, np.uint8)
    x = model.input("x", [1, channels, 32, 32], U8)
    w = model.weights(16, channels, kernel, kernel)
    x = model.add("QLinearConv", [x, scale, zero, w, one(0.01, np.float32), one(0, np.int8),
                                  scale, zero], strides=[2, 2])
    model.output(model.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2]), None, U8)
    return model.serialized()


def unit_that_castor_lacks() -> bytes:
    """A layer, quantized and dequantized for an average pool that is quantized again."""
    model = Model()
    one = lambda number, kind: model.constant(np.array(number, kind))  # noqa: E731
    scale, zero = one(0.02, np.float32), one(128, np.uint8)
    x = model.layer(model.input("x", [1, 8, 14, 14]), 8, 8)
    x = model.add("DequantizeLinear",
                  [model.add("QuantizeLinear", [x, scale, zero]), scale, zero])
    x = model.add("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
    model.output(model.add("QuantizeLinear", [x, scale, zero]), [1, 8, 7, 7], U8)
    return model.serialized()
