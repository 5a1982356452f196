# SPDX-License-Identifier: Apache-2.0
"""castor's own side: functions that are bound once and then run by a prepared call of the C API."""
from __future__ import annotations

import os
from collections.abc import Callable
from ctypes import byref, c_int64, sizeof

import castor
from castor import _library, _runtime
from castor._bound import Bound, Call
from castor._operands import input_operand, output_operand
from castor._structures import NamedConstant, ParseOptions, View

from .tasks import Function, Prepared, Tensor, outputs_of

workers: set[int] = set()
"""Thread ids of castor's pool."""


def note_workers(threads: int) -> None:
    """Makes the pool, if it is not there yet, and notes its threads."""
    before = set(map(int, os.listdir("/proc/self/task")))
    _runtime.executor(threads)
    workers.update(set(map(int, os.listdir("/proc/self/task"))) - before)


def bound_call(function: Function, threads: int) -> tuple[Call, list, tuple]:
    """A call that ran once, its outputs, and what must outlive it."""
    constants = {name: tensor.operand() for name, tensor in function.constants.items()}
    compiled = castor.compile(function.text, constants=constants)
    outputs = outputs_of(function)
    inputs = [input_operand(tensor.operand()) for tensor in function.inputs]
    results = [output_operand(tensor.operand()) for tensor in outputs]
    bound = Bound(compiled.kernel, inputs, results)
    call = bound.new_call()
    if threads > 1:
        note_workers(threads)
    addresses = [operand.address for operand in (*inputs, *results)]
    call.run(addresses, threads if threads > 1 else None)
    return call, outputs, (compiled, bound, inputs, results)


def prepare(function: Function, form: str, threads: int) -> Prepared:
    """The function compiled and bound to its operands."""
    call, outputs, kept = bound_call(function, threads)

    def run(call=call, kept=kept) -> None:
        call.repeat()

    return Prepared(run, lambda: [tensor.data for tensor in outputs], form)


def creation(function: Function) -> Callable[[], object]:
    """Parses, compiles and binds by the C API alone; its operands are described beforehand."""
    text = function.text.encode()
    constants = (NamedConstant * len(function.constants))()
    for entry, (name, tensor) in zip(constants, function.constants.items()):
        entry.name, entry.data = name.encode(), tensor.data.ctypes.data
        entry.bytes = tensor.nbytes
    options = ParseOptions(sizeof(ParseOptions), constants, len(constants), None)
    inputs = (View * len(function.inputs))(*map(view_of, function.inputs))
    outputs = outputs_of(function)
    results = (View * len(outputs))(*map(view_of, outputs))
    runtime = _runtime.runtime().pointer

    def create(kept=(function, outputs)) -> object:
        parsed = _library.Handle(_library.function_destroy)
        kernel = _library.Handle(_library.kernel_destroy)
        bound = _library.Handle(_library.bound_kernel_destroy)
        _library.function_parse(text, len(text), None, byref(options), byref(parsed.pointer))
        _library.runtime_compile(runtime, parsed.pointer, byref(kernel.pointer))
        _library.kernel_bind_views(kernel.pointer, inputs, len(inputs), results, len(results),
                                   None, byref(bound.pointer))
        return parsed, kernel, bound

    return create


def view_of(tensor: Tensor) -> View:
    """The tensor for the C API."""
    shape = (c_int64 * len(tensor.shape))(*tensor.shape)
    return View(tensor.data.ctypes.data, castor.element_type(tensor.element).number,
                len(tensor.shape), shape, None, 0, tensor.nbytes)
