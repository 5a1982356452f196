# SPDX-License-Identifier: Apache-2.0
"""Kernels that are bound to shapes and strides, and their calls."""

from __future__ import annotations

from ctypes import byref, c_int64, c_size_t, c_void_p, sizeof
from typing import Any, List, Optional, Sequence, Tuple

from castor import _library, _runtime
from castor._library import bound_kernel_run, exception_of
from castor._operands import Operand
from castor._structures import ErrorStructure, Extents, RunOptions, View


def extents(values: Sequence[int]) -> Any:
    """Numbers along axes, for the C API."""
    return (c_int64 * len(values))(*values)


class Call:
    """The views of one call, which one thread at a time fills and runs.

    What does not change from call to call is written once: conversions of ctypes would take longer
    than a small kernel.
    """

    __slots__ = ("_arguments", "_error", "_options", "_splits", "_views")

    def __init__(
        self, bound: _library.Handle, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        sources = (View * len(inputs))(*map(view_of, inputs))
        targets = (View * len(outputs))(*map(view_of, outputs))
        self._error = ErrorStructure()
        self._options = RunOptions(struct_size=sizeof(RunOptions))
        self._splits = False  # whether the options have an executor
        # An entry of an array of ctypes is a new object each time; these are kept.
        self._views: List[View] = [*sources, *targets]
        self._arguments = (
            bound.pointer,
            sources,
            c_size_t(len(inputs)),
            targets,
            c_size_t(len(outputs)),
            byref(self._options),
            byref(self._error),
        )

    def run(self, addresses: Sequence[int], threads: Optional[int]) -> None:
        """Computes from and to tensors at these addresses, inputs first."""
        for view, address in zip(self._views, addresses):
            view.data = address
        if threads is not None or self._splits:
            self._options.executor = None if threads is None else _runtime.executor(threads)
            self._splits = threads is not None
        self.repeat()

    def repeat(self) -> None:
        """Computes once more what the last run did, if the tensors are still there."""
        if bound_kernel_run(*self._arguments):
            raise exception_of(self._error)


def view_of(operand: Operand) -> View:
    """The operand for the C API."""
    shape = extents(operand.shape)
    strides = None if operand.strides is None else extents(operand.strides)
    return View(
        operand.address,
        operand.element.number,
        len(operand.shape),
        shape,
        strides,
        0,
        operand.bytes,
    )


class Bound:
    """A kernel for given shapes, strides and element types of all inputs and outputs."""

    __slots__ = ("_calls", "_handle", "_inputs", "_outputs")

    def __init__(
        self, kernel: _library.Handle, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        self._handle = _library.Handle(_library.bound_kernel_destroy)
        views = (View * len(inputs))(*map(view_of, inputs))
        results = (View * len(outputs))(*map(view_of, outputs))
        _library.kernel_bind_views(
            kernel.pointer,
            views,
            len(inputs),
            results,
            len(outputs),
            None,
            byref(self._handle.pointer),
        )
        self._inputs = [operand.without_owner() for operand in inputs]
        self._outputs = [operand.without_owner() for operand in outputs]
        self._calls: List[Call] = []  # that no thread uses at present

    @property
    def pointer(self) -> c_void_p:
        """The castor_bound_kernel."""
        return self._handle.pointer

    def new_call(self) -> Call:
        """A call of its own, for one thread at a time."""
        return Call(self._handle, self._inputs, self._outputs)

    def run(self, addresses: Sequence[int], threads: Optional[int]) -> None:
        """Computes from and to tensors at these addresses, inputs first.

        The caller keeps their owners.
        """
        try:
            call = self._calls.pop()
        except IndexError:
            call = self.new_call()
        call.run(addresses, threads)
        self._calls.append(call)


def output_shapes(
    kernel: _library.Handle, inputs: Sequence[Tuple[int, ...]]
) -> List[Tuple[int, ...]]:
    """The shapes of what the kernel computes from inputs of these shapes."""
    bound = _library.Handle(_library.bound_kernel_destroy)
    shapes = (Extents * len(inputs))()
    for shape, given in zip(shapes, inputs):
        shape.values = extents(given)
        shape.rank = len(given)
    _library.kernel_bind(kernel.pointer, shapes, len(inputs), None, 0, None, byref(bound.pointer))
    count = _library.function_output_count(_library.kernel_function(kernel.pointer))
    found = []
    for index in range(count):
        shape = _library.bound_kernel_output_shape(bound.pointer, index)
        found.append(tuple(shape.values[axis] for axis in range(shape.rank)))
    return found
