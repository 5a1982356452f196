# SPDX-License-Identifier: Apache-2.0
"""Functions that are traced: a Python function of castor.ops is run once on values without data."""

from __future__ import annotations

import functools
import inspect
import re
from collections import OrderedDict
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union, overload

import numpy as np

from castor import _builder
from castor._cache import Cache
from castor._element_types import ElementType
from castor._function import Function
from castor._operands import input_operand
from castor._tensor import Tensor
from castor._value import Value

_Type = Tuple[ElementType, Sequence[_builder.Extent]]


def _name_of(function: Callable[..., Any]) -> str:
    """The function's own name; objects that are called have that of their class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _castor_name(name: str) -> str:
    """A name of ASCII letters and digits, which castor asks for: the others become numbers."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"${ord(found[0]):x}$", name.strip("<>"))


def _signature_of(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        signature = inspect.signature(function)  # without the object of a bound method
    except ValueError:
        raise TypeError(
            f"{name} has no parameters that Python knows: wrap it in a lambda"
        ) from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{name} takes {parameter}; a traced function has one parameter for each input"
            )
    return signature


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

    Inputs may be given by name. A parameter that is left out is no input: its default is a constant
    of what is traced, as is what a bound method finds in its object.
    """

    def __init__(self, function: Callable[..., Any], types: Optional[Sequence[str]]) -> None:
        self.__wrapped__ = function
        self.__name__ = _name_of(function)
        self.__doc__ = function.__doc__
        self._signature = _signature_of(function, self.__name__)
        parameters = self._signature.parameters
        self._names = tuple(parameters)
        self._positional = tuple(
            name for name in parameters if parameters[name].kind != inspect.Parameter.KEYWORD_ONLY
        )
        self._traced = Cache(64)
        self._last: Optional[Function] = None
        self._fixed: Optional[Function] = None
        self._fixed_names = self._names[: len(types or ())]
        if types is not None:
            self._check_inputs(types, {})
            parsed = [_builder.parse_type(text) for text in types]
            self._fixed = self._trace(self._fixed_names, parsed)
            self._last = self._fixed

    def __repr__(self) -> str:
        return f"<castor.function {self.__name__}>"

    def __get__(self, instance: Any, owner: Any = None) -> TracedFunction:
        if instance is not None and self._names[:1] == ("self",):
            raise TypeError(
                f"{self.__name__} is a method, which is traced for each object: leave it"
                f" undecorated and trace it bound, by castor.function(object.{self.__name__})"
            )
        return self

    def _check_inputs(
        self, inputs: Sequence[Any], named: Mapping[str, Any]
    ) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*inputs, **named)
        except TypeError as mistake:
            raise TypeError(f"{self.__name__}({', '.join(self._names)}): {mistake}") from None

    def _trace(self, names: Sequence[str], types: Sequence[_Type]) -> Function:
        """The function whose inputs are these parameters, of these types."""
        builder = _builder.Builder(_castor_name(self.__name__))
        values: OrderedDict[str, Any] = OrderedDict()
        for name, (element, shape) in zip(names, types):
            number = builder.input(_castor_name(name), element, shape)
            values[name] = Value(builder, number, element)
        given = inspect.BoundArguments(self._signature, values)
        results = self.__wrapped__(*given.args, **given.kwargs)
        outputs = list(results) if isinstance(results, (tuple, list)) else [results]
        for output in outputs:
            if not isinstance(output, Value):
                raise TypeError(
                    f"{self.__name__} returns {type(output).__name__}, expected values of"
                    " castor.ops"
                )
        return Function(builder.finish([output.number for output in outputs]))

    def specialized(self, *inputs: Any, **named: Any) -> Function:
        """The compiled function for inputs of these types."""
        return self._specialized(inputs, named)[0]

    def _specialized(
        self, inputs: Sequence[Any], named: Mapping[str, Any]
    ) -> Tuple[Function, Sequence[Any]]:
        """The compiled function, and its inputs in the order of the parameters."""
        names, given = self._positional[: len(inputs)], inputs
        if named:
            arguments = self._check_inputs(inputs, named).arguments
            names, given = tuple(arguments), list(arguments.values())
        if self._fixed is not None:
            if names != self._fixed_names or len(given) != len(names):
                self._check_inputs(inputs, named)
                raise TypeError(
                    f"{self.__name__} has types for {', '.join(self._fixed_names)}, but was given"
                    f" {', '.join(names)}"
                )
            return self._fixed, given
        key = (names, tuple([_rank_of(one) for one in given]))
        made: Optional[Function] = self._traced.get(key)
        if made is None:
            self._check_inputs(inputs, named)
            types = []
            for name, one in zip(names, given):
                operand = input_operand(one)
                extents = [f"{_castor_name(name)}{axis}" for axis in range(len(operand.shape))]
                types.append((operand.element, extents))
            made = self._trace(names, types)
            self._traced.add(key, made)
        self._last = made
        return made, given

    def __call__(
        self,
        *inputs: Any,
        out: Union[Any, Sequence[Any], None] = None,
        threads: Optional[int] = None,
        **named: Any,
    ) -> Any:
        """The result, or a tuple of several; see castor.Function.

        In another function that is traced, it becomes part of that one.
        """
        if Value in map(type, inputs) or (named and Value in map(type, named.values())):
            return self._inlined(inputs, named, out, threads)
        function, given = self._specialized(inputs, named)
        return function(*given, out=out, threads=threads)

    def _inlined(
        self, inputs: Sequence[Any], named: Mapping[str, Any], out: Any, threads: Any
    ) -> Any:
        if self._fixed is not None or out is not None or threads is not None:
            raise TypeError(
                f"{self.__name__} is called in a function that is traced: expected neither out nor"
                " threads there, and no types in its decorator"
            )
        return self.__wrapped__(*inputs, **named)

    def interpret(
        self, *inputs: Any, out: Union[Any, Sequence[Any], None] = None, **named: Any
    ) -> Any:
        """The result by the reference interpreter."""
        function, given = self._specialized(inputs, named)
        return function.interpret(*given, out=out)

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
    have to be. Any function will do whose parameters Python knows: a lambda, a bound method, a
    partial.

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
    if not all(isinstance(text, str) for text in given or ()):
        raise TypeError(f"castor.function of {first!r}, expected a function, or types of inputs")
    return lambda wrapped: TracedFunction(wrapped, given)
