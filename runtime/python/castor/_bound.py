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

    __slots__ = ("arguments", "error", "inputs", "options", "outputs")

    def __init__(
        self, bound: _library.Handle, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        sources = (View * len(inputs))(*map(view_of, inputs))
        targets = (View * len(outputs))(*map(view_of, outputs))
        self.error = ErrorStructure()
        self.options = RunOptions(struct_size=sizeof(RunOptions))
        # An entry of an array of ctypes is a new object each time; these are kept.
        self.inputs = [sources[index] for index in range(len(inputs))]
        self.outputs = [targets[index] for index in range(len(outputs))]
        self.arguments = (
            bound.pointer,
            sources,
            c_size_t(len(inputs)),
            targets,
            c_size_t(len(outputs)),
            byref(self.options),
            byref(self.error),
        )

    def run(self) -> None:
        """Computes the outputs."""
        if bound_kernel_run(*self.arguments):
            raise exception_of(self.error)


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
    """A kernel for given shapes, strides and element types of all inputs and outputs.

    `calls` are those that no thread uses at present.
    """

    __slots__ = ("_handle", "_inputs", "_outputs", "calls")

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
        self.calls: List[Call] = []

    @property
    def pointer(self) -> c_void_p:
        """The castor_bound_kernel."""
        return self._handle.pointer

    def new_call(self) -> Call:
        """A call to add to `calls`, when it has returned, for whoever comes next."""
        return Call(self._handle, self._inputs, self._outputs)

    def run(self, inputs: Sequence[int], outputs: Sequence[int], threads: Optional[int]) -> None:
        """Computes from and to tensors at these addresses, whose owners the caller keeps."""
        try:
            call = self.calls.pop()
        except IndexError:
            call = self.new_call()
        for view, address in zip(call.inputs, inputs):
            view.data = address
        for view, address in zip(call.outputs, outputs):
            view.data = address
        if threads is not None:
            call.options.executor = _runtime.executor(threads)
        call.run()
        call.options.executor = None
        self.calls.append(call)


def output_shapes(kernel: _library.Handle, inputs: Sequence[Operand]) -> List[Tuple[int, ...]]:
    """The shapes of what the kernel computes from these inputs."""
    bound = _library.Handle(_library.bound_kernel_destroy)
    shapes = (Extents * len(inputs))()
    for shape, operand in zip(shapes, inputs):
        shape.values = extents(operand.shape)
        shape.rank = len(operand.shape)
    _library.kernel_bind(kernel.pointer, shapes, len(inputs), None, 0, None, byref(bound.pointer))
    count = _library.function_output_count(_library.kernel_function(kernel.pointer))
    found = []
    for index in range(count):
        shape = _library.bound_kernel_output_shape(bound.pointer, index)
        found.append(tuple(shape.values[axis] for axis in range(shape.rank)))
    return found
