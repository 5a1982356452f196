# SPDX-License-Identifier: Apache-2.0
"""Chains in PyTorch: operation by operation, or compiled by torch.compile."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ..tasks import Function, Lacking, Prepared, Task, Tensor, outputs_of

f32 = torch.float32
Result = tuple[torch.Tensor, ...]
Viewed = Callable[[Tensor], torch.Tensor]


def add_f32(x, y) -> Result:
    return (x + y,)


def mul_bf16(x, y) -> Result:
    return (x * y,)


def clamp_f32(x) -> Result:
    return (torch.clamp(x, 0.0, 6.0),)


def image_normalize(x, mean, scale) -> Result:
    return (((x.to(f32) - mean) * scale).to(torch.float16),)


def dequantize_i8_rows(x, scale) -> Result:
    return ((x.to(f32) * scale).to(torch.float16),)


def quantize_u8(x, scale, zero) -> Result:
    return (torch.clamp(torch.round(x / scale) + zero.to(f32), 0, 255).to(torch.uint8),)


def residual_f16(x, y, scale) -> Result:
    return (torch.relu(x.to(f32) * scale + y.to(f32)).to(torch.float16),)


def requantize_i32(x, scale, bias) -> Result:
    return (torch.clamp(torch.round(x.to(f32) * scale + bias), 0, 255).to(torch.uint8),)


def promote_add(x, y) -> Result:
    return (torch.clamp(x + y.to(f32), -128, 127).to(torch.int8),)


def tensor_f32_u8(x) -> Result:
    low, high = torch.aminmax(x)
    low, high = torch.clamp(low, max=0.0), torch.clamp(high, min=0.0)
    scale = (high - low) / 255
    zero = torch.round(torch.clamp(0 - low / scale, 0, 255))
    y = torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8)
    return y, scale, zero.to(torch.uint8)


def rows_f32_i8(x) -> Result:
    scale = x.abs().amax(dim=1, keepdim=True) / 127
    return torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8), scale


def rows_bf16_i8(x) -> Result:
    return rows_f32_i8(x.to(f32))


def quantize_f32_mxfp8_e4m3(x) -> Result:
    """Scales by OCP's rule: the largest power of two in the block over that of the type."""
    blocks = x.view(*x.shape[:-1], -1, 32)
    exponents = blocks.abs().amax(dim=-1).view(torch.int32) >> 23
    codes = torch.clamp(exponents - 8, min=0)
    factors = ((254 - codes) << 23).view(f32).unsqueeze(-1)
    scaled = torch.clamp(blocks * factors, -448.0, 448.0).view(x.shape)
    return scaled.to(torch.float8_e4m3fn), codes.to(torch.uint8).view(torch.float8_e8m0fnu)


def dequantize_mxfp8_e4m3_bf16(x, scale) -> Result:
    codes = x.to(f32).view(*x.shape[:-1], -1, 32)
    return ((codes * scale.to(f32).unsqueeze(-1)).view(x.shape).to(torch.bfloat16),)


CHAINS: dict[str, Callable[..., Result]] = {
    make.__name__: make for make in (
        add_f32, mul_bf16, clamp_f32, image_normalize, dequantize_i8_rows, quantize_u8,
        residual_f16, requantize_i32, promote_add, tensor_f32_u8, rows_f32_i8, rows_bf16_i8,
        quantize_f32_mxfp8_e4m3, dequantize_mxfp8_e4m3_bf16)}


def bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a result."""
    return tensor.contiguous().view(-1).view(torch.uint8).numpy()


def check(task: Task) -> None:
    """Raises Lacking where the chain is not here."""
    if task.details["function"] not in CHAINS:
        raise Lacking("no chain without unpacking")


def prepare(task: Task, viewed: Viewed, compiled: bool) -> Prepared:
    """The chain on the tensors of the task; results are new tensors in each call."""
    check(task)
    function: Function = task.function("")
    chain = CHAINS[task.details["function"]]
    if compiled:
        torch._dynamo.reset()
        chain = torch.compile(chain, dynamic=False)
    inputs = [viewed(tensor) for tensor in function.inputs]

    def results() -> list[np.ndarray]:
        return [bytes_of(tensor) for tensor in chain(*inputs)]

    return Prepared(lambda: chain(*inputs), results)


def matmul_integer(task: Task, viewed: Viewed) -> Prepared:
    """torch._int_mm: i8 times i8 without zero points."""
    each = task.details["operands"]
    if each.a_zero_point or each.b_zero_point or each.a.element != "i8":
        raise Lacking("i8 x i8 without zero points alone")
    a, b = viewed(each.a), viewed(each.b)
    out = outputs_of(task.function(""))[0]
    y = viewed(out)
    try:
        torch._int_mm(a, b, out=y)
    except RuntimeError as failure:
        raise Lacking(str(failure).splitlines()[0]) from failure
    return Prepared(lambda: torch._int_mm(a, b, out=y), lambda: [out.data])


def qlinear_conv(task: Task, viewed: Viewed) -> Prepared:
    """oneDNN's convolution in torch, with the weights packed ahead and channels last."""
    each = task.details["operands"]
    layer = each.layer
    if layer.axes > 2:
        raise Lacking("no 3-D quantized convolution")
    form = "nhwc"
    function = task.function(form)
    order = (0, layer.axes + 1, *range(1, layer.axes + 1))  # channels first again
    x = viewed(function.inputs[0]).permute(order)
    stride, pad, dilation = ([number] * layer.axes for number in (layer.stride, layer.pad, 1))
    scales, zeros = viewed(each.w_scale), torch.zeros(layer.out_channels, dtype=torch.int32)
    bias = viewed(each.bias).to(f32) * float(each.x_scale) * scales  # f32, by the scales of x and w
    packed = torch.ops.onednn.qconv_prepack(
        viewed(each.w), scales, float(each.x_scale), each.x_zero_point, stride, pad, dilation,
        layer.groups, list(x.shape))

    def run() -> torch.Tensor:
        return torch.ops.onednn.qconv_pointwise(
            x, float(each.x_scale), each.x_zero_point, packed, scales, zeros, bias, stride, pad,
            dilation, layer.groups, float(each.y_scale), each.y_zero_point, torch.uint8, "none",
            [], "")

    try:
        run()
    except (RuntimeError, AttributeError) as failure:
        raise Lacking(str(failure).splitlines()[0]) from failure

    def results() -> list[np.ndarray]:
        y = run()
        return [bytes_of(y.permute(0, *range(2, layer.axes + 2), 1))]

    return Prepared(run, results, form)
