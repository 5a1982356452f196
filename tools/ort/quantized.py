# SPDX-License-Identifier: Apache-2.0
"""The architectures as onnxruntime.quantization quantizes them, kept in build/ort-models."""
import contextlib
import hashlib
import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_dynamic, quantize_static)

from .architectures import ARCHITECTURES
from .inputs import SHAPES, random_inputs

FOLDER = pathlib.Path(__file__).resolve().parent
KEPT = FOLDER.parent.parent / "build" / "ort-models"
# What the models depend on: a change of any of these makes them again.
SOURCES = ("graph.py", "architectures.py", "inputs.py", "quantized.py", "requirements.txt")
CALIBRATION_SAMPLES = 2


class RandomReader(CalibrationDataReader):
    """A few inputs, for the ranges of activations."""

    def __init__(self, model: onnx.ModelProto):
        self._samples = iter([random_inputs(model, SHAPES[0], seed)
                              for seed in range(CALIBRATION_SAMPLES)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def dynamic(model: onnx.ModelProto, path: pathlib.Path, weights: QuantType) -> None:
    """Conv is left out by default, since ONNX Runtime itself is slow at ConvInteger."""
    quantize_dynamic(model, path, weight_type=weights, op_types_to_quantize=["Conv", "MatMul"])


def static(model: onnx.ModelProto, path: pathlib.Path, form: QuantFormat) -> None:
    """u8 activations and i8 weights with a scale for each channel: the fastest types on x86."""
    quantize_static(model, path, RandomReader(model), quant_format=form, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


VARIANTS: dict[str, Callable[[onnx.ModelProto, pathlib.Path], None]] = {
    "dynamic_i8": lambda model, path: dynamic(model, path, QuantType.QInt8),
    "dynamic_u8": lambda model, path: dynamic(model, path, QuantType.QUInt8),
    "qdq": lambda model, path: static(model, path, QuantFormat.QDQ),
    "qoperator": lambda model, path: static(model, path, QuantFormat.QOperator),
}


def names() -> list[str]:
    return [f"{architecture}_{variant}" for architecture in ARCHITECTURES for variant in VARIANTS]


def code_hash() -> str:
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((FOLDER / name).read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    """The quantizer advises shape inference and folding, which these models do not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def quantize(name: str, path: pathlib.Path) -> None:
    """Writes one model, whole or not at all."""
    architecture, variant = name.split("_", 1)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, no_warnings():
        made = pathlib.Path(folder) / "model.onnx"
        VARIANTS[variant](ARCHITECTURES[architecture](), made)
        os.replace(made, path)


def model_path(name: str) -> pathlib.Path:
    """The file of a model, which is made where it is missing; those of older code are removed."""
    folder = KEPT / code_hash()
    if not folder.exists():
        shutil.rmtree(KEPT, ignore_errors=True)
        folder.mkdir(parents=True)
    path = folder / f"{name}.onnx"
    if not path.exists():
        quantize(name, path)
    return path
