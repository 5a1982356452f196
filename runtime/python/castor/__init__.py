# SPDX-License-Identifier: Apache-2.0
"""castor: type conversion, quantization and integer arithmetic on tensors, compiled at run time.

>>> import castor, numpy as np
>>> castor.convert(np.float32([1.0, 500.0]), "f8e4m3", overflow="saturate").view(np.uint8)
array([ 56, 126], dtype=uint8)
"""

from castor.conversion import convert
from castor.element_types import ElementType, element_type, element_types
from castor.errors import Error
from castor.function import Function, compile
from castor.tensor import Tensor

__all__ = [
    "ElementType",
    "Error",
    "Function",
    "Tensor",
    "compile",
    "convert",
    "element_type",
    "element_types",
]
