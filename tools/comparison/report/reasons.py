# SPDX-License-Identifier: Apache-2.0
"""Why a peer is faster than castor where it is: the first reason whose patterns match."""
from __future__ import annotations

import dataclasses
import math
import re

from .rows import Figure, Row

UNEXPLAINED = "not explained yet"


@dataclasses.dataclass(frozen=True)
class Reason:
    """Regular expressions for a figure; a least ratio, and a largest time of castor's."""
    family: str
    name: str
    peer: str
    text: str
    min_ratio: float = 0
    threads: str = ""
    max_seconds: float = math.inf

    def holds(self, row: Row, figure: Figure) -> bool:
        return (figure.ratio >= self.min_ratio
                and row.castor_seconds(figure.form) < self.max_seconds
                and re.fullmatch(self.family, row.family) is not None
                and re.search(self.name, row.name) is not None
                and re.search(self.peer, figure.peer) is not None
                and re.fullmatch(self.threads or ".*", str(row.threads)) is not None)


REASONS = (
    Reason(".*", "of 16 elements$", "",
           "the cost of a call: castor's checks of views and its call through ctypes"),
    Reason("conversions.*", r"^(\w+) to \1$|^[iu](\d+) to [iu]\2$", "",
           "a copy: memcpy, with no call through ctypes before it"),
    Reason("ConvInteger", "^resnet50_[37]_1x1 (u8|i8) x i8$", "oneDNN",
           "with AMX: i32 results of 1.6 and 3.2 MB, which L2 does not hold, are 0.6 of what the"
           " layer moves; castor stores tile registers straight to them"),
    Reason("compile time", "(convolution|matrix product), ", "",
           "castor hashes the weights each time that a function is built, so that equal ones are"
           " packed once, transposes those of products, and sums them for zero points"),
    Reason("compile time", "warm$", "oneDNN",
           "castor parses the text again before it looks it up; oneDNN begins with a descriptor"),
    Reason("compile time", "(chain|conversion), cold$", "oneDNN",
           "castor plans loops, broadcasts and fusion of a function; oneDNN makes one primitive"),
    Reason("conversions.*", "^i32 to bf16$", "oneDNN",
           "oneDNN rounds to f32 first, and then again: 16842753 becomes 0x4b80 instead of 0x4b81"),
    Reason("QLinearConv", "^(mobilenet_stem|mobilenet_5_1x1|resnet50_1_1x1)$", "oneDNN 2",
           "few products for each result: the requantization as ONNX defines it takes castor 22 of"
           " 54 us in mobilenet_stem with channels last; oneDNN's has other bits"),
    Reason("elementwise", "^mul_bf16$", "oneDNN",
           "oneDNN's instruction takes subnormal numbers for zero: 0x0010 times 1 is 0"),
    Reason("QLinearConv", "^mobilenet_6_1x1$", "oneDNN 2",
           "14 x 14 pixels and 64 channels: tiles with an epilogue are transposed by way of memory,"
           " beside few products"),
    Reason(".*", "", "", "within the noise of the machine", min_ratio=0.945),
    Reason("conversions", "^[fiu]64 to ", "NumPy|PyTorch",
           "8 MB from beyond L2: castor's loop waits for its loads, and on Zen 4 prefetches make"
           " that of u64 to u16, written in C, slower", min_ratio=0.85),
    Reason("conversions", "^f16 to bf16$", "OpenVINO",
           "castor computes: 0.52 of a stream at 256 KiB on Zen 4"),
    Reason("conversions", "", "NumPy|PyTorch",
           "both wait for the cache beyond L2, and most orders turn from run to run",
           min_ratio=0.85),
    Reason("conversions of 65,536", "^(i32 to f32|f32 to i32)$", "",
           "both wait for L2, and their order turns from run to run (Zen 4: 0.60 to 1.05 and 0.61"
           " to 1.53 of PyTorch's and NumPy's speed)", min_ratio=0.55),
    Reason("conversions of 65,536", "", "NumPy|PyTorch",
           "both wait for L2, and their order turns from run to run", min_ratio=0.75),
    Reason("elementwise", "^(add|clamp)_f32$", "NumPy|PyTorch",
           "8 to 12 MB: both wait for the cache beyond L2 (Zen 4: add_f32 0.92 and 0.93 of NumPy's"
           " speed, clamp_f32 faster in another run)", min_ratio=0.85),
    Reason(".*", "", "", "two threads of a machine that is shared: the worker was held up, and"
           " castor's median is far above its best; most turn between the two runs",
           threads="2"),
)


def reason_of(row: Row, figure: Figure) -> str:
    return next((reason.text for reason in REASONS if reason.holds(row, figure)), UNEXPLAINED)
