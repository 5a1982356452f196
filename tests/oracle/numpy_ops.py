# SPDX-License-Identifier: Apache-2.0
"""What NumPy gives for the ops of castor: for numpy_oracle.py."""

import numpy as np

NUMPY_TYPES = {"boolean": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1",
               "u16": "u2", "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}
CASTOR_TYPES = {np.dtype(code): name for name, code in NUMPY_TYPES.items()}
FLOATS = ("f16", "f32", "f64")
INTEGERS = tuple(name for name in NUMPY_TYPES if name[0] in "iu")


def zeros_ordered(function, negative_wins):
    """np.minimum and np.maximum, with -0 below +0, which NumPy leaves open."""
    def ordered(a, b):
        result = function(a, b)
        if result.dtype.kind != "f":
            return result
        wins = np.logical_or if negative_wins else np.logical_and
        zero = np.where(wins(np.signbit(a), np.signbit(b)), -0.0, 0.0).astype(result.dtype)
        return np.where((a == 0) & (b == 0), zero, result)
    return ordered


def squared_difference(a, b):
    return (a - b) * (a - b)


def prelu(a, b):
    return np.where(a < 0, a * b, a)


def truncating_divide(a, b):
    """C's division of integers, by NumPy's that rounds down."""
    is_between = (np.mod(a, b) != 0) & ((a < 0) != (b < 0))
    return np.floor_divide(a, b) + is_between.astype(a.dtype)


def relu(x):
    return zeros_ordered(np.maximum, False)(x, x.dtype.type(0))


COMPARISONS = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less,
               "less_equal": np.less_equal, "greater": np.greater,
               "greater_equal": np.greater_equal}
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply,
              "min": zeros_ordered(np.minimum, True), "max": zeros_ordered(np.maximum, False),
              "squared_difference": squared_difference, "prelu": prelu}
INTEGER_DIVISIONS = {"div": truncating_divide, "floor_div": np.floor_divide,
                     "mod": np.fmod, "floor_mod": np.mod}
# floor_div of floats is floor(a / b), each rounded, which np.floor_divide is not.
FLOAT_DIVISIONS = {"div": np.divide, "floor_div": lambda a, b: np.floor(a / b),
                   "mod": np.fmod, "floor_mod": np.mod}
BITWISE = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
           "bitwise_xor": np.bitwise_xor}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or,
           "logical_xor": np.logical_xor}
SHIFTS = {"shift_left": np.left_shift, "shift_right": np.right_shift}
UNARY = {"abs": np.abs, "neg": np.negative, "sign": np.sign, "relu": relu}
INTEGER_UNARY = {"bitwise_not": np.invert, **dict.fromkeys(("floor", "ceil", "trunc", "round_even"),
                                                           np.positive)}
FLOAT_UNARY = {"sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
               "round_even": np.rint, "is_nan": np.isnan}


def binary_ops(element):
    """Ops of any operands; divisors and counts of shifts are another matter."""
    if element == "boolean":
        return {**COMPARISONS, **LOGICAL, **BITWISE}
    if element in FLOATS:
        return {**COMPARISONS, **ARITHMETIC, **FLOAT_DIVISIONS}
    return {**COMPARISONS, **ARITHMETIC, **BITWISE}


def unary_ops(element):
    if element == "boolean":
        return {"not": np.logical_not, "bitwise_not": np.invert}
    if element in FLOATS:
        return {**UNARY, **FLOAT_UNARY}
    return {**UNARY, **INTEGER_UNARY}


def function_arity(name):
    return 1 if name in {**UNARY, **INTEGER_UNARY, **FLOAT_UNARY, "not": None} else 2
