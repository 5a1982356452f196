# SPDX-License-Identifier: Apache-2.0
"""castor: type conversion, quantization and integer arithmetic on tensors, compiled at run time.

>>> import castor, numpy as np
>>> castor.convert(np.float32([1.0, 500.0]), "f8e4m3", overflow="saturate").view(np.uint8)
array([ 56, 126], dtype=uint8)
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from castor import errors
from castor._check import MismatchError
from castor._convert import convert
from castor._element_types import ElementType, element_type, element_types
from castor._function import Function, compile
from castor._info import info
from castor._tensor import Tensor
from castor.errors import Error

if TYPE_CHECKING:
    from castor import ops
    from castor._quantize import dequantize, dequantize_mx, quantize, quantize_mx
    from castor._trace import TracedFunction, function
    from castor._value import Value

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

_LOADED_WHEN_USED = {
    "ops": "castor.ops",
    "Value": "castor._value",
    **dict.fromkeys(("TracedFunction", "function"), "castor._trace"),
    **dict.fromkeys(("quantize", "dequantize", "quantize_mx", "dequantize_mx"), "castor._quantize"),
}
"""Names and their modules, whose import would be a third of the package's."""


if not TYPE_CHECKING:  # which knows the names, and finds misspelt ones

    def __getattr__(name: str) -> Any:
        module_name = _LOADED_WHEN_USED.get(name)
        if module_name is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(module_name)
        value = module if name == "ops" else getattr(module, name)
        globals()[name] = value
        return value

    def __dir__() -> List[str]:
        return sorted({*globals(), *__all__})
