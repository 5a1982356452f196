# SPDX-License-Identifier: Apache-2.0
"""Functions that are traced: a Python function of castor.ops is run once on values without data."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union, overload

import numpy as np

from castor import _builder
from castor._cache import Cache
from castor._element_types import ElementType
from castor._function import Function
from castor._operands import input_operand
from castor._tensor import Tensor
from castor._value import Value

_Type = Tuple[ElementType, Sequence[_builder.Extent]]


def _parameter_names(function: Callable[..., Any]) -> List[str]:
    code = function.__code__
    if code.co_flags & 0x0C or code.co_kwonlyargcount:
        raise TypeError(
            f"{function.__name__} takes *arguments, **arguments or keywords; a traced function"
            " has positional parameters, one for each input"
        )
    return list(code.co_varnames[: code.co_argcount])


def trace(function: Callable[..., Any], types: Sequence[_Type]) -> Function:
    """The function for inputs of these types."""
    names = _parameter_names(function)
    if len(names) != len(types):
        raise TypeError(
            f"{function.__name__} takes {len(names)} inputs ({', '.join(names)}), not {len(types)}"
        )
    builder = _builder.Builder(function.__name__)
    inputs = [
        Value(builder, builder.input(name, element, shape), element)
        for name, (element, shape) in zip(names, types)
    ]
    results = function(*inputs)
    outputs = list(results) if isinstance(results, (tuple, list)) else [results]
    for output in outputs:
        if not isinstance(output, Value):
            raise TypeError(
                f"{function.__name__} returns {type(output).__name__}, expected values of"
                " castor.ops"
            )
    return Function(builder.finish([output.number for output in outputs]))


def _rank_of(given: Any) -> Tuple[Any, int]:
    if isinstance(given, np.ndarray):
        return given.dtype, given.ndim
    if isinstance(given, Tensor):
        return given.element, given.ndim
    operand = input_operand(given)
    return operand.element, len(operand.shape)


class TracedFunction:
    """A Python function of castor.ops, compiled for the types of its inputs.

    Without types in the decorator it is traced once for each combination of element types and
    ranks, with all extents unknown, so that other shapes compile nothing. `ir`, `nest` and the
    others are those of the function that was traced last.
    """

    def __init__(self, function: Callable[..., Any], types: Optional[Sequence[str]]) -> None:
        self.__wrapped__ = function
        self.__name__: str = function.__name__
        self.__doc__ = function.__doc__
        self._traced = Cache(64)
        self._last: Optional[Function] = None
        self._fixed: Optional[Function] = None
        if types is not None:
            self._fixed = trace(function, [_builder.parse_type(text) for text in types])
            self._last = self._fixed

    def __repr__(self) -> str:
        return f"<castor.function {self.__name__}>"

    def specialized(self, *inputs: Any) -> Function:
        """The compiled function for inputs of these types."""
        if self._fixed is not None:
            return self._fixed
        key = tuple([_rank_of(given) for given in inputs])
        made: Optional[Function] = self._traced.get(key)
        if made is None:
            names = _parameter_names(self.__wrapped__)
            types = []
            for index, given in enumerate(inputs):
                operand = input_operand(given)
                name = names[index] if index < len(names) else "input"
                extents = [f"{name}{axis}" for axis in range(len(operand.shape))]
                types.append((operand.element, extents))
            made = trace(self.__wrapped__, types)
            self._traced.add(key, made)
        self._last = made
        return made

    def __call__(
        self,
        *inputs: Any,
        out: Union[Any, Sequence[Any], None] = None,
        threads: Optional[int] = None,
    ) -> Any:
        """The result, or a tuple of several; see castor.Function."""
        return self.specialized(*inputs)(*inputs, out=out, threads=threads)

    def interpret(self, *inputs: Any, out: Union[Any, Sequence[Any], None] = None) -> Any:
        """The result by the reference interpreter."""
        return self.specialized(*inputs).interpret(*inputs, out=out)

    def _traced_last(self) -> Function:
        if self._last is None:
            raise TypeError(
                f"{self.__name__} has not been traced: call it, or give the decorator types"
            )
        return self._last

    @property
    def ir(self) -> str:
        """The function as text."""
        return self._traced_last().ir

    @property
    def nest(self) -> str:
        """The loop nests that it becomes."""
        return self._traced_last().nest

    def asm(self, isa: Optional[str] = None) -> str:
        """The annotated listing of its machine code; see castor.Function.asm."""
        return self._traced_last().asm(isa)

    def check(self, *inputs: Any, seed: int = 0) -> List[str]:
        """Compares machine code with the interpreter; see castor.Function.check."""
        function = self.specialized(*inputs) if inputs else self._traced_last()
        return function.check(*inputs, seed=seed)


@overload
def function(first: Callable[..., Any]) -> TracedFunction: ...
@overload
def function(
    first: Optional[str] = None, *types: str
) -> Callable[[Callable[..., Any]], TracedFunction]: ...
def function(first: Any = None, *types: str) -> Any:
    """Traces a Python function of castor's ops into a compiled function.

    Types of the inputs, such as "f32[?n, 4]", may be given; where an op needs a known extent, they
    have to be.

    >>> import numpy as np
    >>> from castor import ops
    >>> @function
    ... def scaled(x, w):
    ...     return ops.convert(x * w, "i8", overflow="saturate", rounding="nearest_even")
    >>> scaled(np.float32([[1, 2], [3, 4]]), np.float32([0.5, 100]))
    array([[  0, 127],
           [  2, 127]], dtype=int8)
    >>> print(scaled.ir)
    func @scaled(%x: f32[?x0, ?x1], %w: f32[?w0]) -> (i8[?x0, ?]) {
      %0 = mul %x, %w
      %1 = convert %0 {overflow = saturate, rounding = nearest_even} : i8
      return %1
    }
    <BLANKLINE>
    """
    if callable(first):
        return TracedFunction(first, None)
    given = None if first is None else [first, *types]
    return lambda wrapped: TracedFunction(wrapped, given)
