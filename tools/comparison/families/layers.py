# SPDX-License-Identifier: Apache-2.0
"""Layers of convolutional networks, as castor-bench has them."""
from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Layer:
    """Kernel, stride, pad and dilation are equal along all spatial axes."""
    name: str
    channels: int
    extents: tuple[int, ...]
    out_channels: int
    kernel: int = 1
    stride: int = 1
    pad: int = 0
    groups: int = 1

    @property
    def axes(self) -> int:
        return len(self.extents)

    @property
    def out_extents(self) -> tuple[int, ...]:
        return tuple((extent + 2 * self.pad - self.kernel) // self.stride + 1
                     for extent in self.extents)

    @property
    def products(self) -> int:
        return (math.prod(self.out_extents) * self.out_channels
                * self.channels // self.groups * self.kernel ** self.axes)


LAYERS = (
    Layer("resnet50_stem", 3, (224, 224), 64, 7, 2, 3),
    Layer("resnet50_1_1x1", 64, (56, 56), 64),
    Layer("resnet50_2_3x3", 64, (56, 56), 64, 3, 1, 1),
    Layer("resnet50_3_1x1", 64, (56, 56), 256),
    Layer("resnet50_4_1x1", 256, (56, 56), 64),
    Layer("resnet50_5_3x3_s2", 128, (56, 56), 128, 3, 2, 1),
    Layer("resnet50_6_3x3", 128, (28, 28), 128, 3, 1, 1),
    Layer("resnet50_7_1x1", 128, (28, 28), 512),
    Layer("resnet50_8_1x1", 512, (28, 28), 128),
    Layer("resnet50_9_3x3", 256, (14, 14), 256, 3, 1, 1),
    Layer("resnet50_10_1x1", 256, (14, 14), 1024),
    Layer("resnet50_11_1x1", 1024, (14, 14), 256),
    Layer("resnet50_12_3x3", 512, (7, 7), 512, 3, 1, 1),
    Layer("resnet50_13_1x1", 512, (7, 7), 2048),
    Layer("resnet50_14_1x1", 2048, (7, 7), 512),
    Layer("resnet50_15_1x1_s2", 256, (56, 56), 512, 1, 2),
    Layer("mobilenet_stem", 3, (224, 224), 32, 3, 2, 1),
    Layer("mobilenet_1_depthwise", 32, (112, 112), 32, 3, 1, 1, 32),
    Layer("mobilenet_2_depthwise_s2", 96, (112, 112), 96, 3, 2, 1, 96),
    Layer("mobilenet_3_depthwise", 144, (56, 56), 144, 3, 1, 1, 144),
    Layer("mobilenet_4_depthwise", 384, (14, 14), 384, 3, 1, 1, 384),
    Layer("mobilenet_5_1x1", 24, (56, 56), 144),
    Layer("mobilenet_6_1x1", 64, (14, 14), 384),
    Layer("mobilenet_7_1x1", 320, (7, 7), 1280),
    Layer("grouped_3x3", 128, (56, 56), 128, 3, 1, 1, 32),
    Layer("whisper_1", 80, (3000,), 384, 3, 1, 1),
    Layer("whisper_2", 384, (3000,), 384, 3, 2, 1),
    Layer("patch_embedding", 3, (224, 224), 768, 16, 16),
    Layer("conv3d", 64, (8, 56, 56), 64, 3, 1, 1),
)
QUICK_LAYERS = tuple(layer for layer in LAYERS
                     if layer.name in ("resnet50_9_3x3", "mobilenet_4_depthwise"))
