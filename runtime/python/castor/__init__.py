# SPDX-License-Identifier: Apache-2.0
"""castor: type conversion, quantization and integer arithmetic on tensors, compiled at run time.

>>> import castor, numpy as np
>>> castor.convert(np.float32([1.0, 500.0]), "f8e4m3", overflow="saturate").view(np.uint8)
array([ 56, 126], dtype=uint8)
"""

from castor import errors, ops
from castor._check import MismatchError
from castor._convert import convert
from castor._element_types import ElementType, element_type, element_types
from castor._function import Function, compile
from castor._info import info
from castor._quantize import dequantize, dequantize_mx, quantize, quantize_mx
from castor._tensor import Tensor
from castor._trace import TracedFunction, function
from castor._value import Value
from castor.errors import Error

__all__ = [
    "ElementType",
    "Error",
    "Function",
    "MismatchError",
    "Tensor",
    "TracedFunction",
    "Value",
    "compile",
    "convert",
    "dequantize",
    "dequantize_mx",
    "element_type",
    "element_types",
    "errors",
    "function",
    "info",
    "ops",
    "quantize",
    "quantize_mx",
]
