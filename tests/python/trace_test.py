# SPDX-License-Identifier: Apache-2.0
"""What castor.function takes, and how the traced functions are called."""

from __future__ import annotations

import functools
from typing import Any

import castor
import numpy as np
import pytest
from castor import ops


def test_whatever_can_be_called_is_traced() -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def method(self, x: Any) -> Any:
            return x * self.by

        def __call__(self, x: Any) -> Any:
            return self.method(x)

        @castor.function
        def decorated(self, x: Any) -> Any:
            return x

    def größe(höhe, _, x1=None):
        return höhe * _ if x1 is None else höhe * _ + x1

    def product(a, /, b, *, c=1):
        return a * b * c

    x, w = np.float32([1, -2]), np.float32([3, 4])
    scaled = Scaled(2)
    for function, inputs, named, expected, name in (
        (lambda x: x + 1, [x], {}, x + 1, "@lambda(%x:"),
        (scaled.method, [x], {}, 2 * x, "@method(%x:"),
        (scaled, [], {"x": x}, 2 * x, "@Scaled(%x:"),
        (größe, [x, w], {}, x * w, "@gr$f6$$df$e(%h$f6$he: f32[?h$f6$he0], %_:"),
        (größe, [x], {"x1": w, "_": w}, x * w + w, "(%h$f6$he: f32[?h$f6$he0], %_: f32[?_0], %x1:"),
        (functools.partial(product, b=2), [x], {}, 2 * x, "@product(%a: f32[?a0])"),
        (functools.partial(product, 2, c=w), [x], {}, 2 * x * w, "@product(%b: f32[?b0])"),
        (product, [x, w], {}, x * w, "@product(%a: f32[?a0], %b: f32[?b0])"),
        (product, [x], {"c": w, "b": w}, x * w * w, "%b: f32[?b0], %c: f32[?c0])"),
    ):
        traced = castor.function(function)
        for _ in range(2):
            assert (traced(*inputs, **named) == expected).all()
            assert (traced.interpret(*inputs, **named) == expected).all()
        assert name in traced.ir and castor.compile(traced.ir).ir == traced.ir
        assert traced.specialized(*inputs, **named) is traced.specialized(*inputs, **named)
    traced = castor.function(product)
    for inputs, named, message in (
        ([x], {}, r"product\(a, b, c\): missing a required argument: 'b'"),
        ([x, w, w], {}, r"a, b, c\): too many positional arguments"),
        ([x, w], {"d": w}, r"a, b, c\): got an unexpected keyword argument 'd'"),
        ([x, w], {"b": w}, r"a, b, c\): multiple values for argument 'b'"),
    ):
        with pytest.raises(TypeError, match=message):
            traced(*inputs, **named)
    with pytest.raises(TypeError, match=r"decorated is a method.*castor.function\(object.decor"):
        scaled.decorated(x)


def test_defaults_beside_types() -> None:
    @castor.function("f32[?n]", "f32[]")
    def scaled(x, by, offset=1):
        return x * by + offset

    x = np.float32([1, 2])
    assert scaled(x, np.float32(3)).tolist() == scaled(by=np.float32(3), x=x).tolist() == [4, 7]
    with pytest.raises(TypeError, match="scaled has types for x, by, but was given x, by, offset"):
        scaled(x, np.float32(3), x)
    with pytest.raises(TypeError, match=r"x, by, offset\): missing a required argument: 'by'"):
        scaled(x)


def test_integers_in_traced_functions() -> None:
    reshaped = castor.function(lambda x: ops.reshape(x, (np.int64(3), np.uint8(2))))
    assert reshaped(np.arange(6)).tolist() == [[0, 1], [2, 3], [4, 5]]
    summed = castor.function(lambda x: ops.reduce_sum(x, axes=np.array([1])))
    assert summed(np.int32([[1, 2], [3, 4]])).tolist() == [3, 7]
    large = castor.function(lambda x: x + (2**64 - 1))
    assert large(np.uint64([0])).tolist() == [2**64 - 1]
    for number, dtype in ((-1, np.uint64), (2**63, np.int64), (2**64, np.uint64), (-1, np.uint8)):
        with pytest.raises(ValueError, match=f"has no {number}"):
            castor.function(lambda x: x + number)(np.ones(1, dtype))  # noqa: B023


@pytest.mark.parametrize(
    ("element", "number", "has"),
    [
        ("f8e4m3", 1000, False),
        ("f8e4m3", 448, True),
        ("f8e4m3", -460.0, True),
        ("f8e4m3fnuz", 1000, False),
        ("f8e5m2", 1e6, False),
        ("f8e5m2", float("inf"), True),
        ("f8e4m3", float("inf"), False),
        ("f4e2m1", 100, False),
        ("f4e2m1", 6.5, True),
        ("f4e2m1", float("nan"), False),
        ("f6e2m3", -8, False),
        ("f6e3m2", 29, True),
        ("f6e3m2", 31, False),
        ("nf4", 1.5, False),
        ("f8e8m0", 0, False),
        ("f16", 65520, False),
        ("f16", 65519, True),
        ("f32", 10**30, True),
        ("f32", 10**39, False),
        ("f32", 3.4028235e38, True),
        ("f64", 2**64, True),
        ("f64", 10**309, False),
        ("i64", 10**30, False),
    ],
)
def test_numbers_out_of_range(element: str, number: float, has: bool) -> None:
    """A number becomes the nearest one of its type, or is refused: never unseen something else."""
    x = castor.convert(np.float32([0.5]), element)
    traced = castor.function(lambda x: ops.max(x, number))
    if not has:
        with pytest.raises(ValueError, match=f"{element} has no {number}"):
            traced(x)
        return
    found = float(castor.convert(traced(x), "f64")[0])
    largest = max(0.5, number)
    assert found == largest or abs(found - largest) <= abs(largest) / 8


def test_operators_from_either_side() -> None:
    x = np.int32([2, 3, 5])
    for function in (
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: a & b,
        lambda a, b: a | b,
        lambda a, b: a ^ b,
        lambda a, b: a << b,
        lambda a, b: a >> b,
    ):
        for number in (7, np.int32([9, 8, 7])):
            left = castor.function(lambda x, f=function, n=number: f(n, x))
            right = castor.function(lambda x, f=function, n=number: f(x, n))
            assert left(x).tolist() == function(np.asarray(number, np.int32), x).tolist()
            assert right(x).tolist() == function(x, np.asarray(number, np.int32)).tolist()
    row = np.uint8([[1, 2, 3]])
    product = castor.function(lambda x: row @ x)
    assert product(np.uint8([[1], [2], [3]])).tolist() == [[14]]


def test_traced_functions_are_inlined() -> None:
    @castor.function
    def halves(x, by=0.5):
        return x * by, x * (1 - by)

    @castor.function
    def sums(x, w):
        first, second = halves(x)
        third, _ = halves(x, by=w)
        constant, _ = halves(np.float32([2, 4]))
        return first + second + third + constant

    x, w = np.float32([1, 2]), np.float32([3, 4])
    assert (sums(x, w) == x + x * w + np.float32([1, 2])).all()
