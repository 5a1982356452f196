# SPDX-License-Identifier: Apache-2.0
"""Functions that castor compiled, called with arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from ctypes import byref, c_char_p, sizeof
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from castor import _library, _runtime
from castor._bound import Bound, output_shapes
from castor._cache import Cache
from castor._check import EXTENTS, block_extents, compare, fitting_shapes, random_inputs
from castor._element_types import BY_NUMBER
from castor._operands import Operand, dense_operand, input_operand, output_operand
from castor._prepared import PreparedCall, are_lent, form_of, locations_of, new_output
from castor._structures import NamedConstant, ParseOptions
from castor.errors import InvalidArgumentError

MAX_BOUND = 256
"""Bound kernels that a function keeps; beyond them the oldest is dropped."""

MAX_VARIANTS = 16
"""Kernels of a function for tiers of their own and for the interpreter."""
STAGES = ("ir", "nest", "lanes", "asm")
"""In the order of castor_dump_stage."""


class Function:
    """A compiled function. Any thread may call it, several at a time.

    >>> import numpy as np
    >>> twice = compile("func @twice(%x: f32[?n]) -> f32[?n] { %y = add %x, %x return %y }")
    >>> twice(np.float32([1, 2.5]))
    array([2., 5.], dtype=float32)
    """

    def __init__(self, function: _library.Handle) -> None:
        self._function = function
        self.kernel = self._compiled()
        self._bound = Cache(MAX_BOUND)
        self._prepared = Cache(MAX_BOUND)
        self._prepared_into = Cache(MAX_BOUND)
        self._variants = Cache(MAX_VARIANTS)
        pointer = function.pointer
        self.name = _library.decoded(_library.function_name(pointer))
        self.input_names = _library.names(
            _library.function_input_count(pointer),
            lambda index: _library.function_input_name(pointer, index),
        )
        self.output_names = _library.names(
            _library.function_output_count(pointer),
            lambda index: _library.function_output_name(pointer, index),
        )
        self.input_elements = [
            BY_NUMBER[_library.function_input_type(pointer, index).contents.element]
            for index in range(len(self.input_names))
        ]
        self.output_elements = [
            BY_NUMBER[_library.function_output_type(pointer, index).contents.element]
            for index in range(len(self.output_names))
        ]

    def _compiled(self, isa: Optional[str] = None, interpret: bool = False) -> _library.Handle:
        kernel = _library.Handle(_library.kernel_destroy)
        _library.runtime_compile(
            _runtime.runtime(isa, interpret).pointer,
            self._function.pointer,
            byref(kernel.pointer),
        )
        return kernel

    @property
    def ir(self) -> str:
        """The function as text."""
        return _library.text_of(_library.function_print, self._function.pointer)

    @property
    def nest(self) -> str:
        """The loop nests that it becomes for the machine's best tier and dense tensors."""
        return self.dump("nest")

    def asm(self, isa: Optional[str] = None) -> str:
        """The annotated listing of its machine code for dense tensors.

        `isa` is a tier, also one that this machine cannot run; by default it is the machine's best.
        """
        return self.dump("asm", isa)

    def dump(self, stage: str, isa: Optional[str] = None) -> str:
        """A stage of the lowering: "ir", "nest", "lanes" or "asm"."""
        if stage not in STAGES:
            raise ValueError(f"stage {stage!r}, expected {', '.join(STAGES)}")
        number = STAGES.index(stage) + 1
        tier = _runtime.tier_number(isa)
        return _library.text_of(_library.function_dump, self._function.pointer, number, tier, 0)

    def interpret(self, *inputs: Any, out: Union[Any, Sequence[Any], None] = None) -> Any:
        """The result by the reference interpreter: the same bits, slowly."""
        return self._call(*self._variant(None, True), inputs, out, None)

    def check(self, *inputs: Any, seed: int = 0) -> List[str]:
        """Compares machine code with the interpreter on every tier of this machine.

        Without inputs they are random bits, and unknown extents several small numbers, or as many
        blocks as these have. Gives the tiers. Raises castor.MismatchError where a bit differs, and
        ValueError where no such extents fit.
        """
        tiers = _runtime.runnable_tiers()
        for case in [inputs] if inputs or not self.input_names else self._random_cases(seed):
            expected = self.interpret(*case)
            for isa in tiers:
                found = self._call(*self._variant(isa, False), case, None, None)
                compare(self.name, isa, found, expected)
        return tiers

    def _random_cases(self, seed: int) -> List[List[Any]]:
        declared = [
            [(dim.extent, dim.name) for dim in self._dims(index)]
            for index in range(len(self.input_names))
        ]
        blocks = block_extents(self.ir)
        found = [fitting_shapes(declared, n, blocks, self._takes) for n in EXTENTS]
        cases = [random_inputs(self.input_elements, one, seed) for one in found if one is not None]
        if not cases:
            raise ValueError(f"@{self.name} takes no inputs of small extents: check needs some")
        return cases

    def _takes(self, shapes: Sequence[Tuple[int, ...]]) -> bool:
        try:
            output_shapes(self.kernel, shapes)
        except InvalidArgumentError:
            return False
        return True

    def _dims(self, index: int) -> List[Any]:
        declared = _library.function_input_type(self._function.pointer, index).contents
        return [declared.dims[axis] for axis in range(declared.rank)]

    def _variant(self, isa: Optional[str], interpret: bool) -> Tuple[_library.Handle, Cache]:
        """The kernel of a tier or of the interpreter, and its bound kernels."""
        key = (isa, interpret)
        made: Optional[Tuple[_library.Handle, Cache]] = self._variants.get(key)
        if made is None:
            made = (self._compiled(isa, interpret), Cache(MAX_BOUND))
            self._variants.add(key, made)
        return made

    def __repr__(self) -> str:
        return f"<castor.Function @{self.name}>"

    def __call__(
        self,
        *inputs: Any,
        out: Union[Any, Sequence[Any], None] = None,
        threads: Optional[int] = None,
    ) -> Any:
        """The result, or a tuple of several.

        `out` is an array or a castor.Tensor for the result, or a sequence of one for each. With
        `threads` large work is split over that many threads; 0 stands for one for each core.
        """
        if out is None:
            prepared: Optional[PreparedCall] = self._prepared.get(form_of(inputs))
            if prepared is not None:
                return prepared(inputs, threads)
        else:
            results = list(out) if isinstance(out, (tuple, list)) else [out]
            locations = locations_of(inputs, results)
            bound: Optional[Bound] = None
            if locations is not None:
                bound = self._prepared_into.get((len(inputs), locations[0]))
            if locations is not None and bound is not None:
                bound.run(locations[1], threads)
                return results[0] if len(results) == 1 else tuple(results)
        return self._call(self.kernel, self._bound, inputs, out, threads)

    def _call(
        self,
        kernel: _library.Handle,
        cache: Cache,
        given: Sequence[Any],
        out: Union[Any, Sequence[Any], None],
        threads: Optional[int],
    ) -> Any:
        inputs = [input_operand(one) for one in given]
        if len(inputs) != len(self.input_names):
            raise TypeError(
                f"@{self.name} takes {len(self.input_names)} inputs"
                f" ({', '.join(self.input_names)}), not {len(inputs)}"
            )
        results = self._results(kernel, inputs, out)
        outputs = [output_operand(one) for one in results]
        key = tuple(operand.form() for operand in (*inputs, *outputs))
        bound: Optional[Bound] = cache.get(key)
        if bound is None:
            bound = Bound(kernel, inputs, outputs)
            cache.add(key, bound)
        addresses = [operand.address for operand in (*inputs, *outputs)]
        bound.run(addresses, threads)
        if kernel is self.kernel and out is None and are_lent(inputs, given):
            shapes = [operand.shape for operand in outputs]
            prepared = PreparedCall(bound, list(zip(self.output_elements, shapes)))
            self._prepared.add(form_of(given), prepared)
        elif kernel is self.kernel and out is not None:
            locations = locations_of(given, results)
            if locations is not None and locations[1] == addresses:
                self._prepared_into.add((len(inputs), locations[0]), bound)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(
        self, kernel: _library.Handle, inputs: List[Operand], out: Union[Any, Sequence[Any], None]
    ) -> List[Any]:
        if out is None:
            shapes = output_shapes(kernel, [operand.shape for operand in inputs])
            return [new_output(*made) for made in zip(self.output_elements, shapes)]
        if len(self.output_names) == 1 and not isinstance(out, (tuple, list)):
            return [out]
        if len(out) != len(self.output_names):
            raise TypeError(
                f"@{self.name} has {len(self.output_names)} results, not {len(out)} as in out"
            )
        return list(out)


def compile(
    text: str, name: Optional[str] = None, *, constants: Optional[Mapping[str, Any]] = None
) -> Function:
    """Compiles a function in castor's text form (ir/README.md).

    Of several functions in the text `name` picks one. `constants` gives the data of `constant
    @name`: arrays, or castor.Tensor.
    """
    for parameter, given in (("text", text), ("name", name)):
        if not isinstance(given, str) and (parameter == "text" or given is not None):
            raise TypeError(f"{parameter} is {type(given).__name__}, expected str")
    operands = _constants(constants)
    named = (NamedConstant * len(operands))()
    for entry, (key, operand) in zip(named, operands.items()):
        entry.name = key.encode()
        entry.data = operand.address
        entry.bytes = operand.bytes
    options = ParseOptions(sizeof(ParseOptions), named, len(operands), None)
    function = _library.Handle(_library.function_destroy)
    encoded = text.encode()
    _library.function_parse(
        c_char_p(encoded),
        len(encoded),
        None if name is None else name.encode(),
        byref(options),
        byref(function.pointer),
    )
    if operands:
        _check_constants(_library.text_of(_library.function_print, function.pointer), operands)
    return Function(function)


def _constants(given: Optional[Mapping[str, Any]]) -> Dict[str, Operand]:
    if given is None:
        return {}
    if not isinstance(given, AnyMapping) or not all(isinstance(key, str) for key in given):
        raise TypeError(f"constants is {given!r}, expected a mapping from names to arrays")
    return {key: dense_operand(input_operand(value)) for key, value in given.items()}


def _check_constants(ir: str, operands: Mapping[str, Operand]) -> None:
    """Compares data with the types that the function declares; the parser only counts bytes."""
    declared = re.findall(r"^  %\S+ = constant @(\S+) : (\S+?)\[([\d, ]*)\]", ir, re.M)
    for name, element, extents in declared:
        operand = operands[name]
        found = f"{operand.element}[{', '.join(map(str, operand.shape))}]"
        if found != f"{element}[{extents}]":
            raise InvalidArgumentError(
                f"constant @{name}: found {found}, expected {element}[{extents}]"
            )
