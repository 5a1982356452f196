# SPDX-License-Identifier: Apache-2.0
"""Cases of every broadcast rule, and of values: for numpy_oracle.py."""

import itertools

import numpy as np

from numpy_cases import (Cases, Refusal, add_ops, function_text, in_shift_range, joint_shape,
                         narrowed, random_extent, random_operand_shapes, random_shape,
                         random_tensor, rule_text, shape_text, without_zero)
from numpy_ops import (CASTOR_TYPES, INTEGER_DIVISIONS, INTEGERS, NUMPY_TYPES, SHIFTS, binary_ops,
                       function_arity, unary_ops)

PAIRS = 420  # pairs of shapes per rule


def add_binary(cases, rng, element, shapes, attributes="", reshape=None, shapes_ok=True):
    """Every op of two operands of a type; `reshape` gives B as NumPy broadcasts it."""
    a = random_tensor(rng, element, shapes[0])
    b = random_tensor(rng, element, shapes[1])
    groups = [(binary_ops(element), b)]
    if element in INTEGERS:
        groups += [(INTEGER_DIVISIONS, without_zero(b)), (SHIFTS, in_shift_range(b))]
    for ops, operand in groups:
        reshaped = [a, reshape(operand)] if reshape and shapes_ok else None
        add_ops(cases, ops, [a, operand], attributes, reshaped, shapes_ok)


def add_numpy(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        shapes = random_operand_shapes(rng, 2)
        is_ok = joint_shape(*shapes) is not None
        add_binary(cases, rng, next(elements_of_turn), shapes, shapes_ok=is_ok)


def add_none(cases, rng, elements_of_turn):
    for _ in range(PAIRS // 3):
        a = random_shape(rng)
        b = a if rng.random() < .5 else narrowed(rng, a)
        add_binary(cases, rng, next(elements_of_turn), (a, b), " {broadcast = none}",
                   shapes_ok=a == b)


def along(axes, extents, rank):
    """[1.., B, ..1]: B's extents at these axes of `rank`."""
    shape = [1] * rank
    for axis, extent in zip(axes, extents):
        shape[axis] = extent
    return tuple(shape)


def pdpd_shape(a, b, axis):
    """The shape in which NumPy broadcasts B onto A, whose shape the result must have; or None."""
    if axis < -1 or len(b) > len(a):
        return None
    start = len(a) - len(b) if axis == -1 else axis
    trimmed = list(b)
    while trimmed and trimmed[-1] == 1:
        trimmed.pop()
    if start + len(trimmed) > len(a):
        return None
    shape = along(range(start, start + len(trimmed)), trimmed, len(a))
    return shape if joint_shape(a, shape) == tuple(a) else None


def random_pdpd(rng):
    """A, B and the axis, which fit more often than not."""
    a = random_shape(rng)
    if rng.random() < .15:
        return a, random_shape(rng), int(rng.integers(-2, 8))
    start = int(rng.integers(0, len(a) + 1))
    end = int(rng.integers(start, len(a) + 1))
    b = tuple(1 if rng.random() < .25 else extent for extent in a[start:end])
    b += (1,) * int(rng.integers(0, start + 1) if rng.random() < .3 else 0)
    if rng.random() < .1 and b:
        b = (*b[:-1], random_extent(rng))
    return a, b, -1 if start + len(b) == len(a) and rng.random() < .5 else start


def axis_text(axis):
    return "" if axis == -1 else f", axis = {axis}"


def add_pdpd(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        a, b, axis = random_pdpd(rng)
        shape = pdpd_shape(a, b, axis)
        add_binary(cases, rng, next(elements_of_turn), (a, b),
                   f" {{broadcast = pdpd{axis_text(axis)}}}",
                   lambda operand, shape=shape: operand.reshape(shape), shape is not None)


def add_select(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        mode = " {broadcast = none}" if rng.random() < .2 else ""
        shapes = random_operand_shapes(rng, 3)
        if mode and rng.random() < .6:
            shapes = [shapes[0]] * 3
        is_ok = len(set(shapes)) == 1 if mode else joint_shape(*shapes) is not None
        element = next(elements_of_turn)
        inputs = [random_tensor(rng, "boolean", shapes[0]),
                  *(random_tensor(rng, element, shape) for shape in shapes[1:])]
        add_ops(cases, {"select": np.where}, inputs, mode, shapes_ok=is_ok)


def add_look_up(cases, rng, elements_of_turn):
    """Codes of both signs in one table, or in one for each index of an axis."""
    for _ in range(PAIRS):
        shape = random_shape(rng, 4)
        codes = random_tensor(rng, rng.choice(["u8", "i8"]), shape)
        index = np.ascontiguousarray(codes).view("u1").reshape(shape)
        axis = rng.integers(len(shape)) if shape and rng.random() < .6 else None
        rows = () if axis is None else (shape[axis],)
        element = next(elements_of_turn)
        table = random_tensor(rng, element, (*rows, 256))
        attributes = ""
        if axis is None:
            expected = table[index]
        else:
            along = [-1 if i == axis else 1 for i in range(len(shape))]
            expected = table[np.arange(shape[axis]).reshape(along), index]
            attributes = f" {{axis = {axis}}}"
        for unknown in (False, True):
            text = function_text([codes, table], [f"look_up %a, %b{attributes}"],
                                 ([len(shape)], [element]), unknown)
            cases.add(text, [codes, table], [np.asarray(expected)], None)


def add_chains(cases, rng, elements_of_turn):
    """Two ops on three operands, whose intermediate result is a result too."""
    for _ in range(PAIRS):
        shapes = random_operand_shapes(rng, 3)
        element = next(elements_of_turn)
        inputs = [random_tensor(rng, element, shape) for shape in shapes]
        ops = list(binary_ops(element).items())[6:]  # without comparisons
        (first, inner), (second, outer) = (ops[rng.integers(len(ops))] for _ in range(2))
        middle, joint = joint_shape(*shapes[:2]), joint_shape(*shapes)
        expected = None
        if joint is not None:
            expected = [inner(*inputs[:2]), outer(inputs[2], inner(*inputs[:2]))]
        ranks = [max(map(len, shapes[:2])), max(map(len, shapes))]
        for unknown in (False, True):
            text = function_text(inputs, [f"{first} %a, %b", f"{second} %c, %r0"],
                                 (ranks, [element] * 2), unknown)
            named = [*shapes, *([] if middle is None else [middle])]
            declared = [shape_text(shape, unknown) for shape in named]
            cases.add(text, inputs, expected, Refusal(named, declared, rule_text("")))


def add_programs(cases, rng, elements_of_turn):
    """Functions of up to 16 ops on any earlier values, of which the last two are results."""
    for _ in range(2 * PAIRS):
        shapes = random_operand_shapes(rng, 3)
        if joint_shape(*shapes) is None:
            continue
        element = next(elements_of_turn)
        inputs = [random_tensor(rng, element, shape) for shape in shapes]
        values = dict(zip("abc", inputs))
        ops = [*binary_ops(element).items(), *unary_ops(element).items()]
        ops = [(name, function) for name, function in ops
               if function(*inputs[:function_arity(name)]).dtype == inputs[0].dtype]
        lines = []
        for i in range(rng.integers(2, 17)):
            name, function = ops[rng.integers(len(ops))]
            operands = rng.choice(list(values), function_arity(name))
            lines.append(f"{name} " + ", ".join(f"%{operand}" for operand in operands))
            values[f"r{i}"] = function(*(values[operand] for operand in operands))
        expected = list(values.values())[-2:]
        results = [result.ndim for result in expected], [element] * 2
        for unknown in (False, True):
            cases.add(function_text(inputs, lines, results, unknown), inputs, expected, None)


# ---- The op `broadcast`.


def add_broadcast(cases, data, target, attributes, viewed):
    """`viewed`: the data as NumPy broadcasts them to the result, or None. The second form has `?`
    extents, and the target's are those of another parameter."""
    element = CASTOR_TYPES[data.dtype]
    for unknown in (False, True):
        line = f"%r = broadcast %a{attributes} : "
        inputs, parameters, wanted = [data], "", shape_text(target)
        if unknown:
            wanted = "[" + ", ".join(f"?t{i}" for i in range(len(target))) + "]"
            inputs = [data, np.zeros(target, np.uint8)]
            parameters = f", %t: u8{wanted}"
        refused_rank = max(len(target), data.ndim if "bidirectional" in attributes else 0)
        rank = refused_rank if viewed is None else viewed.ndim
        text = (f"func @f(%a: {element}{shape_text(data.shape, unknown)}{parameters}) -> "
                f"({element}{shape_text((0,) * rank, True)}) {{\n  {line}{wanted}\n"
                f"  return %r\n}}\n")
        refusal = Refusal([data.shape, target], [shape_text(data.shape, unknown), wanted],
                          rule_text(attributes or " {mode = numpy}"))
        cases.add(text, inputs, None if viewed is None else [viewed], refusal)


def broadcast_to(data, shape, target):
    """The data in that shape, repeated to the target; None where NumPy refuses."""
    try:
        return None if shape is None else np.broadcast_to(data.reshape(shape), target)
    except ValueError:
        return None


def add_broadcast_modes(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        shape, target = random_operand_shapes(rng, 2)
        data = random_tensor(rng, next(elements_of_turn), shape)
        add_broadcast(cases, data, target, "", broadcast_to(data, shape, target))
        joint = joint_shape(shape, target)
        viewed = None if joint is None else broadcast_to(data, shape, joint)
        add_broadcast(cases, data, target, " {mode = bidirectional}", viewed)


def add_broadcast_pdpd(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        target, shape, axis = random_pdpd(rng)
        data = random_tensor(rng, next(elements_of_turn), shape)
        viewed = broadcast_to(data, pdpd_shape(target, shape, axis), target)
        add_broadcast(cases, data, target, f" {{mode = pdpd{axis_text(axis)}}}", viewed)


def random_explicit(rng):
    """Data's shape, the target and the axes, which fit more often than not."""
    target = random_shape(rng)
    axes = sorted(rng.choice(len(target), rng.integers(0, len(target) + 1), replace=False).tolist()
                  if target else [])
    shape = [1 if rng.random() < .3 else target[axis] for axis in axes]
    if rng.random() < .15 and axes:
        kind, at = rng.integers(4), rng.integers(len(axes))
        if kind == 0:
            axes[at] = int(rng.integers(-1, len(target) + 2))
        elif kind == 1:
            shape.append(2)
        elif kind == 2:
            axes.append(axes[at])
        else:
            shape[at] = random_extent(rng)
    return tuple(shape), target, axes


def explicit_shape(shape, target, axes):
    is_ok = (len(axes) == len(shape) and all(0 <= axis < len(target) for axis in axes)
             and all(a < b for a, b in zip(axes, axes[1:])))
    return along(axes, shape, len(target)) if is_ok else None


def add_broadcast_explicit(cases, rng, elements_of_turn):
    for _ in range(PAIRS):
        shape, target, axes = random_explicit(rng)
        data = random_tensor(rng, next(elements_of_turn), shape)
        viewed = broadcast_to(data, explicit_shape(shape, target, axes), target)
        add_broadcast(cases, data, target, f" {{mode = explicit, axes = {axes}}}", viewed)


# ---- Values.


def every_value(element):
    """All of a type of at most 16 bits."""
    dtype = np.dtype(NUMPY_TYPES[element])
    if element == "boolean":
        return np.array([False, True])
    return np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)


def add_values(cases, rng):
    """Unary ops on every value, binary ops on every pair of 8-bit ones, one op a function."""
    for element in NUMPY_TYPES:
        is_small = np.dtype(NUMPY_TYPES[element]).itemsize <= 2
        row = every_value(element) if is_small else random_tensor(rng, element, (20000,))
        for name, function in unary_ops(element).items():
            add_ops(cases, {name: function}, [row])
        if len(row) > 256:
            row = random_tensor(rng, element, (400,))
        column = row.reshape(-1, 1)
        for name, function in binary_ops(element).items():
            add_ops(cases, {name: function}, [column, row])
        if element in INTEGERS:
            for name, function in INTEGER_DIVISIONS.items():
                add_ops(cases, {name: function}, [column, row[row != 0]])
            counts = np.arange(8 * row.dtype.itemsize, dtype=row.dtype)
            for name, function in SHIFTS.items():
                add_ops(cases, {name: function}, [column, counts])


def all_cases(seed):
    rng = np.random.default_rng(seed)
    cases = Cases()
    turn = itertools.cycle(NUMPY_TYPES)
    for add in (add_numpy, add_none, add_pdpd, add_select, add_look_up, add_chains, add_programs,
                add_broadcast_modes, add_broadcast_pdpd, add_broadcast_explicit):
        add(cases, rng, turn)
    add_values(cases, rng)
    return cases
